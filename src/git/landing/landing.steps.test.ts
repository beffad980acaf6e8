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

/** Steps that answer one thing after another, and what was asked of them. */
function scripted(answers: {
  readonly prepared: readonly PrepareResult[];
  readonly moves?: readonly MoveEnd[];
  readonly verdicts?: readonly VerifyResult[];
}) {
  const asked: string[] = [];
  const [prepared, moves] = [[...answers.prepared], [...(answers.moves ?? [])]];
  const verdicts = answers.verdicts && [...answers.verdicts];
  const next = <T>(list: T[], what: string): T => {
    asked.push(what);
    const first = list.shift();
    if (first === undefined) throw new Error(`nothing is left to answer ${what}`);
    return first;
  };
  const steps: LandingSteps = {
    lock: async () => next([{ token: 7 }], 'lock'),
    prepare: async () => next(prepared, 'prepare'),
    verify: verdicts && (async ({ commit }) => next(verdicts, `verify ${commit}`)),
    move: async ({ commit }) => next(moves, `move ${commit}`),
    unlock: async () => void asked.push('unlock'),
  };
  const land = (maxAttempts?: number) =>
    landing(steps, { source: { branch: 'work' }, onto: 'main', maxAttempts });
  return { steps, asked, land };
}

describe('a landing', () => {
  it('takes its steps one after another, and gives the lock back', async () => {
    const { asked, land } = scripted({
      prepared: [ready('c')],
      verdicts: [{ passed: true }],
      moves: [moved],
    });
    expect(await land()).toEqual({
      kind: 'landed',
      branch: 'main',
      from: 'old',
      commit: 'c',
      commits: [{ commit: 'c', subject: 'Do it' }],
      subjects: ['Do it'],
      checkout: undefined,
      token: 7,
      wasAlone: true,
    });
    expect(asked).toEqual(['lock', 'prepare', 'verify c', 'move c', 'unlock']);
  });

  it('verifies again what is another commit after a lost race, and nothing that has passed', async () => {
    const { asked, land } = scripted({
      prepared: [ready('c'), ready('c'), ready('d')],
      verdicts: [{ passed: true }, { passed: true }],
      moves: [lost, lost, moved],
    });
    expect(await land()).toMatchObject({ kind: 'landed', commit: 'd' });
    expect(asked).toEqual([
      ...['lock', 'prepare', 'verify c', 'move c', 'prepare', 'move c'],
      ...['prepare', 'verify d', 'move d', 'unlock'],
    ]);
  });

  it('gives up after so many lost races', async () => {
    const { land, asked } = scripted({ prepared: [ready('c'), ready('d')], moves: [lost, lost] });
    expect(await land(2)).toMatchObject({ kind: 'lost-the-race', attempts: 2 });
    expect(asked.at(-1)).toBe('unlock');
  });

  it.each<[string, Parameters<typeof scripted>[0], object]>([
    ['nothing is left', { prepared: [{ kind: 'nothing', commit: 'old' }] }, { kind: 'nothing-to-land' }],
    [
      'it does not fit',
      { prepared: [{ kind: 'conflict', files: ['a'], subject: 'Do', onto: 'old' }] },
      { kind: 'conflict', onto: 'old', hint: expect.stringContaining('git switch work && git rebase main') },
    ],
    [
      'it does not pass',
      { prepared: [ready('c')], verdicts: [{ passed: false, output: 'red', workAt: '/w' }] },
      { kind: 'verify-failed', output: 'red', hint: expect.stringContaining('git -C /w diff main...') },
    ],
    ['it was taken over', { prepared: [ready('c')], moves: [{ kind: 'fenced' }] }, { kind: 'fenced' }],
    [
      'the checkout is in the way when it moves',
      {
        prepared: [ready('c')],
        moves: [{ kind: 'in-the-way', path: '/m', why: 'busy', hint: 'wait', files: [] }],
      },
      { kind: 'main-checkout-in-the-way', path: '/m', branch: 'main' },
    ],
  ])('ends when %s', async (_, answers, expected) => {
    const { land, asked } = scripted(answers);
    expect(await land()).toMatchObject(expected);
    expect(asked.at(-1)).toBe('unlock');
  });

  it.each(['lock', 'prepare', 'verify', 'move'] as const)(
    'that cannot %s gives the lock back, which may have come all the same',
    async name => {
      const { steps, asked } = scripted({
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
      await expect(landing(broken, { source: { branch: 'work' }, onto: 'main' })).rejects.toThrow(
        `no ${name}`,
      );
      expect(asked.at(-1)).toBe('unlock');
    },
  );
});

describe('work that is made ready for somebody else to land', () => {
  const prepareWith = (answers: Parameters<typeof scripted>[0], ends: readonly ConfirmEnd['kind'][]) => {
    const { steps, asked } = scripted(answers);
    const left = [...ends];
    const confirm = async ({ commit }: { readonly commit: string }): Promise<ConfirmEnd> => {
      asked.push(`confirm ${commit}`);
      return { kind: left.shift() ?? 'lost' };
    };
    const course = { source: { branch: 'work' }, onto: 'main' };
    return { asked, ended: handingOver({ ...steps, confirm }, course) };
  };

  it('goes the way of a landing, and moves nothing', async () => {
    const { asked, ended } = prepareWith({ prepared: [ready('c')], verdicts: [{ passed: true }] }, [
      'confirmed',
    ]);
    expect(await ended).toEqual({ kind: 'ready-to-land', branch: 'main', commit: 'c' });
    expect(asked).toEqual(['lock', 'prepare', 'verify c', 'confirm c', 'unlock']);
  });

  it('begins again if the branch has gone on while it was verified', async () => {
    const { asked, ended } = prepareWith(
      { prepared: [ready('c'), ready('d')], verdicts: [{ passed: true }, { passed: true }] },
      ['lost', 'confirmed'],
    );
    expect(await ended).toMatchObject({ kind: 'ready-to-land', commit: 'd' });
    expect(asked.slice(3)).toEqual(['confirm c', 'prepare', 'verify d', 'confirm d', 'unlock']);
  });

  it('is handed to nobody if somebody else has it by now', async () => {
    const { asked, ended } = prepareWith({ prepared: [ready('c')] }, ['fenced']);
    expect(await ended).toMatchObject({ kind: 'fenced' });
    expect(asked.at(-1)).toBe('unlock');
  });
});
