import { isDeepStrictEqual } from 'node:util';
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import type { BeginResult } from '../conflict/resolve.ts';
import { type Deed, Twins } from './test-support.ts';

const poem = Array.from({ length: 9 }, (_, line) => `line ${line}\n`);
const poemWith = (line: number, word: string): string => poem.with(line, `${word}\n`).join('');

const work = fc.integer({ min: 0, max: 2 });
/** One line each, and never the same in two places: git would take that for a file that moved. */
const shortFile = fc
  .tuple(fc.constantFrom('a.txt', 'b.txt', 'd/c.txt', 'd/e/f.txt'), fc.constantFrom('1', '2', undefined))
  .map(([path, text]) => ({ path, text: text && `${path} ${text}\n` }));
const longFile = fc
  .tuple(fc.constantFrom(1, 7), fc.constantFrom('x', 'y'))
  .map(([line, word]) => ({ path: 'poem.txt', text: poemWith(line, word) }));

const writing = fc
  .tuple(
    fc.option(work, { nil: undefined, freq: 9 }),
    fc.oneof({ weight: 4, arbitrary: shortFile }, longFile),
  )
  .map(([where, file]): Deed => ({ kind: 'write', work: where, ...file }));
const plain = fc
  .tuple(fc.constantFrom('create', 'commit', 'land', 'changes', 'reset', 'remove'), work)
  .map(([kind, where]): Deed => ({ kind, work: where }));
const keeping = fc
  .tuple(fc.constantFrom('park', 'deliver'), work, fc.constantFrom('t1', 'a task'))
  .map(([kind, where, task]): Deed => ({ kind, work: where, task }));
const solving = fc
  .tuple(work, fc.option(fc.constantFrom('solved\n', 'd/c.txt 1\n'), { nil: undefined }), fc.boolean())
  .map(([where, text, isGivenUp]): Deed => ({ kind: 'solve', work: where, text, isGivenUp }));
/** What most often comes together. */
const finishing = work.map((where): readonly Deed[] => [
  { kind: 'commit', work: where },
  { kind: 'land', work: where },
]);
const deeds = fc
  .array(
    fc.oneof(
      { weight: 6, arbitrary: writing.map(deed => [deed]) },
      { weight: 2, arbitrary: plain.map(deed => [deed]) },
      { weight: 1, arbitrary: keeping.map(deed => [deed]) },
      { weight: 2, arbitrary: solving.map(deed => [deed]) },
      { weight: 4, arbitrary: finishing },
    ),
    { minLength: 4, maxLength: 14 },
  )
  .map(list => list.flat());

/** The files of a conflict that a landing met, or that was laid out; none if all fits. */
function clashing(came: unknown): readonly string[] {
  const { ok } = came as { readonly ok?: { readonly kind?: string; readonly files?: readonly string[] } };
  if (ok?.kind === 'conflict') return ok.files ?? [];
  const [begun] = Array.isArray(ok)
    ? (ok as readonly Partial<Extract<BeginResult, { kind: 'conflict' }>>[])
    : [];
  return begun?.resolution?.files.map(({ path }) => path) ?? [];
}

const apartFromPoem = (files: readonly string[]) => files.filter(file => file !== 'poem.txt');

describe('the model of a repository', () => {
  it('comes to what git comes to, with the same ids', { timeout: 300_000 }, async () => {
    await fc.assert(
      fc.asyncProperty(deeds, async list => {
        const twins = await Twins.made({ 'poem.txt': poem.join(''), 'd/c.txt': 'd/c.txt 0\n' });
        const begin = [0, 1, 2].map((each): Deed => ({ kind: 'create', work: each }));
        for (const deed of [...begin, ...list]) {
          const [real, modelled] = await twins.both(deed);
          if (clashing(modelled).includes('poem.txt') && !isDeepStrictEqual(modelled, real)) {
            // Git merges lines, and the model whole files: that much may differ, and no other file.
            expect(apartFromPoem(clashing(modelled))).toEqual(apartFromPoem(clashing(real)));
            return;
          }
          expect({ deed, came: modelled }).toEqual({ deed, came: real });
        }
        const [real, modelled] = await twins.states();
        expect(modelled).toEqual(real);
      }),
      { numRuns: Number(process.env['REPRISE_DRIFT_RUNS'] ?? 12), endOnFailure: true },
    );
  });
});
