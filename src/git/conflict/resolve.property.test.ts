import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import fc from 'fast-check';
import { expect, it } from 'vitest';
import { conflictLab, type Lab } from '../test-support.ts';

const names = ['a b.txt', 'ü/日本 语.txt'] as const;
const slots = 4;

/** Changes of one side: slots of files. */
const edits = fc.uniqueArray(fc.tuple(fc.constantFrom(...names), fc.nat(slots - 1)), {
  selector: ([name, slot]) => `${name} ${slot}`,
});
type Edits = readonly (readonly [string, number])[];

/** Slots are so far apart that changes never touch each other, and every line is unique. */
const textOf = (values: readonly string[]): string =>
  values.flatMap((value, slot) => [value, 'a', 'b', 'c', 'd'].map(line => `${slot}: ${line}\n`)).join('');

class Side {
  readonly values = new Map(names.map(name => [name as string, Array<string>(slots).fill('old')]));
  readonly #lab: Lab;
  readonly #folder: string;

  constructor(lab: Lab, folder: string) {
    this.#lab = lab;
    this.#folder = folder;
  }

  commit(changes: Edits, word: string): void {
    for (const [name, slot] of changes) this.values.get(name)?.splice(slot, 1, word);
    for (const [name, values] of this.values) this.#lab.write(name, textOf(values), this.#folder);
    this.#lab.commit(this.#folder, `only of ${word}.txt`, `${word}\n`);
  }
}

const conflict = /^<{7} [^\n]*\n(.*?)^={7}\n(.*?)^>{7} [^\n]*\n/gms;

it('a resolved branch is based on main and keeps every change that did not conflict', async () => {
  const runs = fc.record({
    main: edits,
    work: fc.array(edits, { minLength: 1, maxLength: 3 }),
    takeOurs: fc.array(fc.boolean(), { minLength: 1, maxLength: 8 }),
  });
  const property = fc.asyncProperty(runs, async ({ main, work, takeOurs }) => {
    const begun = Object.fromEntries(names.map(name => [name, textOf(Array<string>(slots).fill('old'))]));
    const { lab, path, branch, tryBegin, proceed, state } = await conflictLab(begun);
    const ours = new Side(lab, lab.root);
    ours.commit(main, 'main');
    const theirs = new Side(lab, path);
    for (const [i, changes] of work.entries()) theirs.commit(changes, `work ${i}`);

    const disputed = new Set(main.map(String));
    const hasConflict = work.flat().some(each => disputed.has(String(each)));
    let hunks = 0;
    let next = await tryBegin();
    expect(next.kind).toBe(hasConflict ? 'conflict' : 'fits');
    while (next.kind === 'conflict') {
      for (const file of next.resolution.files) {
        const text = readFileSync(join(path, file.path), 'utf8');
        const solved = text.replace(conflict, (_, one: string, other: string) =>
          takeOurs[hunks++ % takeOurs.length] ? one : other,
        );
        expect(solved).not.toBe(text);
        lab.write(file.path, solved, path);
      }
      const step = await proceed(next.resolution);
      if (step.kind !== 'conflict') {
        expect(step.kind).toBe('resolved');
        break;
      }
      next = step;
    }
    if (!hasConflict) return;

    expect(lab.git('merge-base', branch, 'main')).toBe(lab.git('rev-parse', 'main'));
    expect(state()).toEqual([`refs/heads/${branch}`, lab.git('rev-parse', branch), '']);
    for (const name of names) {
      const lines = readFileSync(join(path, name), 'utf8').split('\n');
      for (let slot = 0; slot < slots; slot++) {
        const [one, other] = [ours, theirs].map(side => side.values.get(name)?.[slot] ?? '');
        const possible = one === 'old' ? [other] : other === 'old' ? [one] : [one, other];
        expect(possible.map(value => `${slot}: ${value}`)).toContain(lines[slot * 5]);
      }
    }
    const own = ['main', ...work.keys()].map(
      word => `only of ${word === 'main' ? word : `work ${word}`}.txt`,
    );
    const files = lab.gitAt(path, '-c', 'core.quotePath=false', 'ls-files').split('\n');
    expect(files).toEqual(expect.arrayContaining(own));
  });
  const place = [names[1], 2] as [(typeof names)[number], number];
  const disputedTwice = { main: [place], work: [[place], [], [place]], takeOurs: [true, false] };
  await fc.assert(property, { numRuns: 8, examples: [[disputedTwice]] });
});
