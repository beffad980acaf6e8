import { describe, expect, test } from 'vitest';
import { load, scopeOf, shortProblemsIn, stepOf } from './test-support.ts';

/** Returns the base of the last step's workspace: a step, `run` or a commit. `none` without a workspace. */
function baseOf(steps: readonly string[]): string {
  const model = load(`steps:\n${steps.map(step => `  - { ${step} }\n`).join('')}`);
  const { body } = stepOf(model, model.steps.at(-1)?.id ?? '');
  const workspace = body.kind === 'run' || body.kind === 'agent' ? body.work?.workspace : undefined;
  if (workspace?.kind !== 'worktree') return 'none';
  const { base } = workspace;
  switch (base.kind) {
    case 'run':
      return 'run';
    case 'step':
      return `step ${base.id}`;
    case 'ref':
      return `ref ${base.name(scopeOf({ inputs: { x: 'v1' } }))}`;
  }
}

const agent = (id: string, keys = '') => `id: ${id}, agent: coder, prompt: p${keys && `, ${keys}`}`;
const script = (id: string, keys = '') => `id: ${id}, run: ls${keys && `, ${keys}`}`;

describe('a workspace', () => {
  test.each<[string, readonly string[], string]>([
    ['from the base of the run', [agent('a')], 'run'],
    ['from the work of the step before', [agent('a'), agent('b', 'needs: a')], 'step a'],
    ['from the nearest work', [agent('a'), agent('b', 'needs: a'), agent('c', 'needs: [b]')], 'step b'],
    [
      'from work before an approval',
      [agent('a'), 'id: ok, needs: a, approve: ok?', agent('b', 'needs: ok')],
      'step a',
    ],
    [
      'from work before a script without a workspace',
      [agent('a'), script('s', 'needs: a, workspace: none'), agent('b', 'needs: s')],
      'step a',
    ],
    [
      'from work before a landing',
      [agent('a'), 'id: l, needs: a, land: main', agent('b', 'needs: l')],
      'step a',
    ],
    [
      'from work before a read-only step',
      [agent('a'), agent('r', 'needs: a, workspace: readonly'), agent('b', 'needs: r')],
      'step a',
    ],
    [
      'from work before a fan-out without a selection',
      [agent('a'), agent('f', 'needs: a, concurrency: 2'), agent('b', 'needs: f')],
      'step a',
    ],
    [
      'from the selected copy of a fan-out',
      [agent('a'), agent('f', 'needs: a, concurrency: 2, select: { gates: ls }'), agent('b', 'needs: f')],
      'step f',
    ],
    [
      'from the base of the run after independent work',
      [agent('a'), agent('b'), agent('c', 'needs: [a, b]')],
      'run',
    ],
    [
      'from the work that contains all others',
      [agent('a'), agent('b', 'needs: a'), agent('c', 'needs: [a, b]')],
      'step b',
    ],
    [
      'from the base of the run after two steps with the same base',
      [agent('a'), agent('b', 'needs: a'), agent('c', 'needs: a'), agent('d', 'needs: [b, c]')],
      'run',
    ],
    ['from the base of the run after a script without work', [script('a'), agent('b', 'needs: a')], 'run'],
    [
      'from the nearest work in any order of the file',
      ['id: z, needs: a, approve: ok?', agent('a'), agent('b', 'needs: z')],
      'step a',
    ],
    [
      'from a named step',
      [agent('a'), agent('b', 'needs: a'), agent('c', 'needs: b, workspace: { base: a }')],
      'step a',
    ],
    ['from a branch', [agent('a'), agent('b', 'needs: a, workspace: { base: main }')], 'ref main'],
    [
      'from a branch that has the name of a step',
      [agent('a'), agent('b', 'workspace: { base: refs/heads/a }')],
      'ref refs/heads/a',
    ],
  ])('starts %s', (_, steps, expected) => {
    expect(baseOf(steps)).toBe(expected);
  });

  test('starts from a computed commit', () => {
    const model = load(
      'inputs: { x: {} }\nsteps: [{ id: a, agent: x, prompt: p, workspace: { base: "${{ inputs.x }}" } }]',
    );
    expect(stepOf(model, 'a').body).toMatchObject({ work: { workspace: { base: { kind: 'ref' } } } });
  });
});

describe('a script', () => {
  test.each<[string, readonly string[], string]>([
    ['in the folder of the project', [script('a')], 'none'],
    ['in the folder of the project after other scripts', [script('a'), script('b', 'needs: a')], 'none'],
    ['on the work of an agent before it', [agent('fix'), script('lint', 'needs: fix')], 'step fix'],
    [
      'on the work of a script before it',
      [script('gen', 'workspace: worktree'), script('lint', 'needs: gen')],
      'step gen',
    ],
    [
      'on the work of the last script before it',
      [agent('fix'), script('format', 'needs: fix'), script('lint', 'needs: format')],
      'step format',
    ],
    [
      'in the folder of the project after independent work',
      [agent('a'), agent('b'), script('c', 'needs: [a, b]')],
      'none',
    ],
    [
      'in the folder of the project with `workspace: none`',
      [agent('a'), script('b', 'needs: a, workspace: none')],
      'none',
    ],
    ['in a worktree if it has checks', [script('a', 'checks: ls')], 'run'],
    ['in a worktree if it has a setup', [script('a', 'setup: ls')], 'run'],
    ['in a worktree if it has artifacts', [script('a', 'artifacts: [x]')], 'run'],
    [
      'in a worktree of the base if it has checks after independent work',
      [agent('a'), agent('b'), script('c', 'needs: [a, b], checks: ls')],
      'run',
    ],
  ])('runs %s', (_, steps, expected) => {
    expect(baseOf(steps)).toBe(expected);
  });
});

test.each<[string, readonly string[], readonly string[]]>([
  [
    'runs later',
    [agent('a', 'workspace: { base: b }'), agent('b')],
    ['[b] step `a` cannot start from the work of step `b` without depending on it'],
  ],
  [
    'is the step itself',
    [agent('a', 'workspace: { base: a }')],
    ['[a] step `a` cannot start from the work of step `a` without depending on it'],
  ],
  [
    'is an approval',
    [`id: q, approve: ok?`, agent('a', 'needs: q, workspace: { base: q }')],
    ['[q] step `q` leaves no work, because it has no workspace of its own'],
  ],
  [
    'is read-only',
    [agent('r', 'workspace: readonly'), agent('a', 'needs: r, workspace: { base: r }')],
    ['[r] step `r` leaves no work, because its workspace is read-only'],
  ],
  [
    'is a fan-out without a selection',
    [agent('f', 'concurrency: 2'), agent('a', 'needs: f, workspace: { base: f }')],
    ['[f] step `f` fans out without `select`, so each of its copies leaves work of its own'],
  ],
])('a base that %s is rejected', (_, steps, expected) => {
  expect(shortProblemsIn(`steps:\n${steps.map(step => `  - { ${step} }\n`).join('')}`)).toEqual(expected);
});

test('a cycle is reported once and does not hang the placement', () => {
  expect(shortProblemsIn(`steps: [{ ${agent('a', 'needs: b')} }, { ${agent('b', 'needs: a')} }]`)).toEqual([
    '[b] these steps need each other in a cycle: a -> b -> a',
  ]);
});

test('a chain of 3,000 steps is placed', () => {
  const chain = Array.from({ length: 3000 }, (_, n) => script(`s${n}`, n === 0 ? '' : `needs: s${n - 1}`));
  expect(
    baseOf([agent('first'), ...chain.map((step, n) => (n === 0 ? script('s0', 'needs: first') : step))]),
  ).toBe('step s2998');
});
