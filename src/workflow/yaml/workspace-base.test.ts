import { describe, expect, test } from 'vitest';
import { load, scopeOf, shortProblemsIn, stepOf } from './test-support.ts';

/** Where the workspace of the last step begins: a step, `run`, or a commit; `none` without a workspace. */
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

describe('a workspace begins', () => {
  test.each<[string, readonly string[], string]>([
    ['at the base of the run', [agent('a')], 'run'],
    ['where the step before left off', [agent('a'), agent('b', 'needs: a')], 'step a'],
    ['at the nearest one', [agent('a'), agent('b', 'needs: a'), agent('c', 'needs: [b]')], 'step b'],
    [
      'there through gates',
      [agent('a'), 'id: ok, needs: a, approve: ok?', agent('b', 'needs: ok')],
      'step a',
    ],
    [
      'there through scripts without a workspace',
      [agent('a'), script('s', 'needs: a, workspace: none'), agent('b', 'needs: s')],
      'step a',
    ],
    ['there through landings', [agent('a'), 'id: l, needs: a, land: main', agent('b', 'needs: l')], 'step a'],
    [
      'past a read-only one',
      [agent('a'), agent('r', 'needs: a, workspace: readonly'), agent('b', 'needs: r')],
      'step a',
    ],
    [
      'past a fan-out',
      [agent('a'), agent('f', 'needs: a, concurrency: 2'), agent('b', 'needs: f')],
      'step a',
    ],
    [
      'at the selected one of a fan-out',
      [agent('a'), agent('f', 'needs: a, concurrency: 2, select: { gates: ls }'), agent('b', 'needs: f')],
      'step f',
    ],
    ['at the base of the run after several', [agent('a'), agent('b'), agent('c', 'needs: [a, b]')], 'run'],
    [
      'at the one that holds the others',
      [agent('a'), agent('b', 'needs: a'), agent('c', 'needs: [a, b]')],
      'step b',
    ],
    [
      'at the base of the run after two that share a base',
      [agent('a'), agent('b', 'needs: a'), agent('c', 'needs: a'), agent('d', 'needs: [b, c]')],
      'run',
    ],
    ['at the base of the run after what is not work', [script('a'), agent('b', 'needs: a')], 'run'],
    [
      'whatever the order of the file',
      ['id: z, needs: a, approve: ok?', agent('a'), agent('b', 'needs: z')],
      'step a',
    ],
    [
      'where it says',
      [agent('a'), agent('b', 'needs: a'), agent('c', 'needs: b, workspace: { base: a }')],
      'step a',
    ],
    ['at a branch', [agent('a'), agent('b', 'needs: a, workspace: { base: main }')], 'ref main'],
    [
      'at a branch with the name of a step',
      [agent('a'), agent('b', 'workspace: { base: refs/heads/a }')],
      'ref refs/heads/a',
    ],
  ])('%s', (_, steps, expected) => {
    expect(baseOf(steps)).toBe(expected);
  });

  test('where a value says', () => {
    const model = load(
      'inputs: { x: {} }\nsteps: [{ id: a, agent: x, prompt: p, workspace: { base: "${{ inputs.x }}" } }]',
    );
    expect(stepOf(model, 'a').body).toMatchObject({ work: { workspace: { base: { kind: 'ref' } } } });
  });
});

describe('a script works', () => {
  test.each<[string, readonly string[], string]>([
    ['in the folder of the project', [script('a')], 'none'],
    ['there after other scripts', [script('a'), script('b', 'needs: a')], 'none'],
    ['on the work before it', [agent('fix'), script('lint', 'needs: fix')], 'step fix'],
    [
      'on the work of a script before it',
      [script('gen', 'workspace: worktree'), script('lint', 'needs: gen')],
      'step gen',
    ],
    [
      'on what scripts before it made of the work',
      [agent('fix'), script('format', 'needs: fix'), script('lint', 'needs: format')],
      'step format',
    ],
    [
      'in the folder of the project after several works',
      [agent('a'), agent('b'), script('c', 'needs: [a, b]')],
      'none',
    ],
    [
      'in the folder of the project if it says so',
      [agent('a'), script('b', 'needs: a, workspace: none')],
      'none',
    ],
    ['in a worktree if it has checks', [script('a', 'checks: ls')], 'run'],
    ['in a worktree if it prepares one', [script('a', 'setup: ls')], 'run'],
    ['in a worktree if it leaves artifacts', [script('a', 'artifacts: [x]')], 'run'],
    [
      'in a worktree of the base if it has checks after several works',
      [agent('a'), agent('b'), script('c', 'needs: [a, b], checks: ls')],
      'run',
    ],
  ])('%s', (_, steps, expected) => {
    expect(baseOf(steps)).toBe(expected);
  });
});

test.each<[string, readonly string[], readonly string[]]>([
  [
    'comes later',
    [agent('a', 'workspace: { base: b }'), agent('b')],
    ['[b] step `a` does not come after step `b`, so it cannot begin where that left off'],
  ],
  [
    'is the step itself',
    [agent('a', 'workspace: { base: a }')],
    ['[a] step `a` does not come after step `a`, so it cannot begin where that left off'],
  ],
  [
    'is a question',
    [`id: q, approve: ok?`, agent('a', 'needs: q, workspace: { base: q }')],
    ['[q] step `q` leaves no work: it has no workspace of its own'],
  ],
  [
    'is read-only',
    [agent('r', 'workspace: readonly'), agent('a', 'needs: r, workspace: { base: r }')],
    ['[r] step `r` leaves no work: its workspace is read-only'],
  ],
  [
    'is a fan-out',
    [agent('f', 'concurrency: 2'), agent('a', 'needs: f, workspace: { base: f }')],
    ['[f] step `f` fans out without `select`, so it leaves several works and not one'],
  ],
])('a base that %s is refused', (_, steps, expected) => {
  expect(shortProblemsIn(`steps:\n${steps.map(step => `  - { ${step} }\n`).join('')}`)).toEqual(expected);
});

test('a circle is reported once, and nothing else hangs', () => {
  expect(shortProblemsIn(`steps: [{ ${agent('a', 'needs: b')} }, { ${agent('b', 'needs: a')} }]`)).toEqual([
    '[b] these steps wait for each other in a circle: a -> b -> a',
  ]);
});

test('long chains and wide graphs of many steps are placed', () => {
  const chain = Array.from({ length: 3000 }, (_, n) => script(`s${n}`, n === 0 ? '' : `needs: s${n - 1}`));
  expect(
    baseOf([agent('first'), ...chain.map((step, n) => (n === 0 ? script('s0', 'needs: first') : step))]),
  ).toBe('step s2998');
});
