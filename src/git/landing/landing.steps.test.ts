import { describe, expect, it } from 'vitest';
import {
  type ConfirmEnd,
  handingOver,
  type LandingSteps,
  landing,
  type MoveEnd,
  type PrepareResult,
  type VerifyResult,
} from './landing.ts';

const ready = (commit: string): PrepareResult => ({ kind: 'ready', from: 'old', tip: 'tip', commit });
const moved: MoveEnd = { kind: 'moved', commits: [{ commit: 'c', subject: 'Do it' }], wasAlone: true };
const lost: MoveEnd = { kind: 'lost' };

/** Phases that give the scripted answers in order, with a log of the calls. */
function scripted(answers: {
  readonly prepared: readonly PrepareResult[];
  readonly moves?: readonly MoveEnd[];
  readonly verdicts?: readonly VerifyResult[];
}) {
  const calls: string[] = [];
  const [prepared, moves] = [[...answers.prepared], [...(answers.moves ?? [])]];
  const verdicts = answers.verdicts && [...answers.verdicts];
  const next = <T>(list: T[], call: string): T => {
    calls.push(call);
    const first = list.shift();
    if (first === undefined) throw new Error(`no answer left for ${call}`);
    return first;
  };
  const steps: LandingSteps = {
    lock: async () => next([{ token: 7 }], 'lock'),
    prepare: async () => next(prepared, 'prepare'),
    verify: verdicts && (async ({ commit }) => next(verdicts, `verify ${commit}`)),
    move: async ({ commit }) => next(moves, `move ${commit}`),
    unlock: async () => void calls.push('unlock'),
  };
  const land = (maxAttempts?: number) =>
    landing(steps, { source: { branch: 'work' }, target: 'main', maxAttempts });
  return { steps, calls, land };
}

describe('a landing', () => {
  it('runs its phases in order, then releases the lock', async () => {
    const { calls, land } = scripted({
      prepared: [ready('c')],
      verdicts: [{ passed: true }],
      moves: [moved],
    });
    expect(await land()).toEqual({
      kind: 'landed',
      target: 'main',
      from: 'old',
      commit: 'c',
      commits: [{ commit: 'c', subject: 'Do it' }],
      subjects: ['Do it'],
      checkout: undefined,
      token: 7,
      wasAlone: true,
    });
    expect(calls).toEqual(['lock', 'prepare', 'verify c', 'move c', 'unlock']);
  });

  it('verifies again after a lost race only if the rebased commit changed', async () => {
    const { calls, land } = scripted({
      prepared: [ready('c'), ready('c'), ready('d')],
      verdicts: [{ passed: true }, { passed: true }],
      moves: [lost, lost, moved],
    });
    expect(await land()).toMatchObject({ kind: 'landed', commit: 'd' });
    expect(calls).toEqual([
      ...['lock', 'prepare', 'verify c', 'move c', 'prepare', 'move c'],
      ...['prepare', 'verify d', 'move d', 'unlock'],
    ]);
  });

  it('gives up after the maximum number of lost races', async () => {
    const { land, calls } = scripted({ prepared: [ready('c'), ready('d')], moves: [lost, lost] });
    expect(await land(2)).toMatchObject({ kind: 'lost-the-race', attempts: 2 });
    expect(calls.at(-1)).toBe('unlock');
  });

  it.each<[string, Parameters<typeof scripted>[0], object]>([
    [
      'nothing is left to land',
      { prepared: [{ kind: 'nothing', commit: 'old' }] },
      { kind: 'nothing-to-land' },
    ],
    [
      'the work conflicts with the target',
      { prepared: [{ kind: 'conflict', files: ['a'], subject: 'Do', onto: 'old' }] },
      { kind: 'conflict', onto: 'old', hint: expect.stringContaining('git switch work && git rebase main') },
    ],
    [
      'the verification fails',
      { prepared: [ready('c')], verdicts: [{ passed: false, output: 'red', workAt: '/w' }] },
      { kind: 'verify-failed', output: 'red', hint: expect.stringContaining('git -C /w diff main...') },
    ],
    [
      'another process has taken over the work',
      { prepared: [ready('c')], moves: [{ kind: 'fenced' }] },
      { kind: 'fenced' },
    ],
    [
      'a checkout blocks the move',
      {
        prepared: [ready('c')],
        moves: [{ kind: 'in-the-way', path: '/m', why: 'busy', hint: 'wait', files: [] }],
      },
      { kind: 'main-checkout-in-the-way', path: '/m', target: 'main' },
    ],
  ])('ends if %s', async (_, answers, expected) => {
    const { land, calls } = scripted(answers);
    expect(await land()).toMatchObject(expected);
    expect(calls.at(-1)).toBe('unlock');
  });

  it.each(['lock', 'prepare', 'verify', 'move'] as const)(
    'releases the lock, which may have been acquired, if `%s` fails',
    async name => {
      const { steps, calls } = scripted({
        prepared: [ready('c')],
        verdicts: [{ passed: true }],
        moves: [moved],
      });
      const broken = {
        ...steps,
        [name]: async () => {
          throw new Error(`no ${name}`);
        },
      };
      await expect(landing(broken, { source: { branch: 'work' }, target: 'main' })).rejects.toThrow(
        `no ${name}`,
      );
      expect(calls.at(-1)).toBe('unlock');
    },
  );
});

describe('a hand-over', () => {
  const prepareWith = (answers: Parameters<typeof scripted>[0], ends: readonly ConfirmEnd['kind'][]) => {
    const { steps, calls } = scripted(answers);
    const left = [...ends];
    const confirm = async ({ commit }: { readonly commit: string }): Promise<ConfirmEnd> => {
      calls.push(`confirm ${commit}`);
      return { kind: left.shift() ?? 'lost' };
    };
    const course = { source: { branch: 'work' }, target: 'main' };
    return { calls, ended: handingOver({ ...steps, confirm }, course) };
  };

  it('runs the phases of a landing, but confirms instead of moving the target', async () => {
    const { calls, ended } = prepareWith({ prepared: [ready('c')], verdicts: [{ passed: true }] }, [
      'confirmed',
    ]);
    expect(await ended).toEqual({ kind: 'ready-to-land', target: 'main', commit: 'c' });
    expect(calls).toEqual(['lock', 'prepare', 'verify c', 'confirm c', 'unlock']);
  });

  it('retries if the target moves during the verification', async () => {
    const { calls, ended } = prepareWith(
      { prepared: [ready('c'), ready('d')], verdicts: [{ passed: true }, { passed: true }] },
      ['lost', 'confirmed'],
    );
    expect(await ended).toMatchObject({ kind: 'ready-to-land', commit: 'd' });
    expect(calls.slice(3)).toEqual(['confirm c', 'prepare', 'verify d', 'confirm d', 'unlock']);
  });

  it('ends as fenced if another process has taken over the work', async () => {
    const { calls, ended } = prepareWith({ prepared: [ready('c')] }, ['fenced']);
    expect(await ended).toMatchObject({ kind: 'fenced' });
    expect(calls.at(-1)).toBe('unlock');
  });
});
