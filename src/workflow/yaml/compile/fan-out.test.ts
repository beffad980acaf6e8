import { describe, expect, test } from 'vitest';
import type { Scope } from '../../model.ts';
import { bodyOf, load, problemsIn, scopeOf, shortProblemsIn, stepOf, succeeded } from '../test-support.ts';

const fanOutOf = (keys: string) =>
  stepOf(load(`inputs: { x: { type: json } }\nsteps: [{ id: a, run: ls, ${keys} }]`), 'a').fanOut;
const itemsOf = (keys: string, given?: Partial<Scope>) => fanOutOf(keys)?.items(scopeOf(given));

describe('concurrency', () => {
  test.each([0, 1])('of %i is an ordinary step', count => {
    expect(fanOutOf(`concurrency: ${count}`)).toBeUndefined();
    expect(fanOutOf(`concurrency: ${count}, strategy: { max-parallel: 2 }`)).toBeUndefined();
  });

  test('makes identical copies', () => {
    expect(fanOutOf('concurrency: 3')).toMatchObject({ kind: 'concurrency', onFailure: 'fail-fast' });
    expect(itemsOf('concurrency: 3')).toEqual([{}, {}, {}]);
  });

  test('gives a script a worktree of its own, unless it wants none', () => {
    const work = (keys: string) => bodyOf(load(`steps: [{ id: a, run: ls, ${keys} }]`), 'a', 'run').work;
    expect(work('concurrency: 2')).toMatchObject({ workspace: { kind: 'worktree', readonly: false } });
    expect(work('concurrency: 2, workspace: none')).toMatchObject({ workspace: { kind: 'none' } });
    expect(work('concurrency: 1')).toBeUndefined();
  });

  test.each([
    ['strategy: { max-parallel: 2 }', { maxParallel: 2, onFailure: 'fail-fast' }],
    ['strategy: { fail-fast: false }', { onFailure: 'continue' }],
    ['strategy: { fail-fast: true }', { onFailure: 'fail-fast' }],
    ['strategy: { on_failure: finish-running }', { onFailure: 'finish-running' }],
    ['select: { gates: npm test }', { onFailure: 'continue' }],
    ['select: { gates: npm test }, strategy: { fail-fast: true }', { onFailure: 'fail-fast' }],
  ])('with %s', (keys, expected) => {
    expect(fanOutOf(`concurrency: 3, ${keys}`)).toMatchObject(expected);
  });
});

describe('a matrix', () => {
  test('is fixed, or computed when the step runs', () => {
    expect(itemsOf('strategy: { matrix: { os: [linux, mac], n: [1] } }')).toEqual([
      { os: 'linux', n: 1 },
      { os: 'mac', n: 1 },
    ]);
    expect(itemsOf('strategy: { matrix: { f: "${{ inputs.x }}" } }', { inputs: { x: ['a', 'b'] } })).toEqual([
      { f: 'a' },
      { f: 'b' },
    ]);
    expect(
      itemsOf('strategy: { matrix: { f: "${{ fromJSON(inputs.x) }}", g: ["${{ inputs.x }}"] } }', {
        inputs: { x: '[1]' },
      }),
    ).toEqual([{ f: 1, g: '[1]' }]);
    expect(
      itemsOf('strategy: { matrix: "${{ inputs.x }}" }', { inputs: { x: [{ a: 1 }, { b: 2 }] } }),
    ).toEqual([{ a: 1 }, { b: 2 }]);
    expect(
      itemsOf('strategy: { matrix: "${{ inputs.x }}" }', {
        inputs: { x: { a: [1, 2], exclude: [{ a: 1 }] } },
      }),
    ).toEqual([{ a: 2 }]);
  });

  test('may come to nothing when the step runs', () => {
    expect(itemsOf('strategy: { matrix: { f: "${{ inputs.x }}" } }', { inputs: { x: [] } })).toEqual([]);
  });

  test.each([
    [
      '{ f: "${{ inputs.x }}" }',
      'a,b',
      '`strategy.matrix.f` must be a list, not `a,b`; it comes from ${{ inputs.x }}',
    ],
    [
      '"${{ inputs.x }}"',
      7,
      '`strategy.matrix` must be a map of lists, or a list of maps, not `7`; it comes from ${{ inputs.x }}',
    ],
    [
      '"${{ inputs.x }}"',
      ['a'],
      '`strategy.matrix[0]` must be a map, not `a`; it comes from ${{ inputs.x }}',
    ],
    [
      '{ f: [1], include: "${{ inputs.x }}" }',
      null,
      '`strategy.matrix.include` must be a list, not empty; it comes from ${{ inputs.x }}',
    ],
  ])('of %s with %j fails when the step runs', (matrix, x, message) => {
    expect(() => itemsOf(`strategy: { matrix: ${matrix} }`, { inputs: { x } })).toThrowError(
      expect.objectContaining({ code: 'EXPRESSION_FAILED', message }),
    );
  });

  test('is read by everything that a copy does', () => {
    const model = load(`
steps:
  - id: a
    strategy: { matrix: { file: [x.md], deep: [{ n: 1 }] } }
    agent: coder
    env: { FILE: "\${{ matrix.file }}" }
    prompt: "Document \${{ matrix.file }} \${{ matrix.deep.n }}"
    checks: ["test -f \${{ matrix.file }}"]
    workspace: { branch: "docs/\${{ matrix.file }}", base: "\${{ matrix.file }}" }
`);
    const body = bodyOf(model, 'a', 'agent');
    const scope = scopeOf({ matrix: { file: 'x.md', deep: { n: 1 } } });
    expect(body.prompt(scope)).toBe('Document x.md 1');
    expect(body.env(scope)).toEqual({ FILE: 'x.md' });
    expect(body.work.checks[0]?.command(scope).env).toEqual({ FILE: 'x.md', REPRISE_VALUE_1: 'x.md' });
    const { workspace } = body.work;
    if (workspace.kind !== 'worktree' || workspace.base.kind !== 'ref') throw new Error('not so');
    expect([workspace.branch?.(scope), workspace.base.name(scope)]).toEqual(['docs/x.md', 'x.md']);
  });

  test('gives each child its input', () => {
    const model = load(
      'steps: [{ id: a, strategy: { matrix: { n: [1, 2] } }, uses: c, with: { n: "${{ matrix.n }}" } }]',
      {
        others: { c: 'inputs: { n: { type: number } }\nsteps: [{ id: x, run: ls }]' },
      },
    );
    expect(bodyOf(model, 'a', 'uses').input(scopeOf({ matrix: { n: 2 } }))).toEqual({ n: 2 });
  });
});

describe('a selection', () => {
  test('has gates, a rank, or a judge', () => {
    expect(
      fanOutOf('concurrency: 2, select: { gates: [npm test, npm run lint], rank: node size.js }')?.select,
    ).toMatchObject({
      gates: [{ text: 'npm test' }, { text: 'npm run lint' }],
      rank: { text: 'node size.js' },
    });
    const judged = fanOutOf(
      'concurrency: 2, select: { judge: { agent: critic, prompt: "Best for ${{ inputs.x }}?" } }',
    )?.select;
    expect(judged).toMatchObject({ gates: [], judge: { agent: 'critic' } });
    expect(judged?.judge?.prompt?.(scopeOf({ inputs: { x: 7 } }))).toBe('Best for 7?');
    expect(fanOutOf('concurrency: 2, select: { judge: critic }')?.select?.judge).toMatchObject({
      agent: 'critic',
    });
  });
});

describe('mistakes', () => {
  test('of many zeros do not fill the memory', () => {
    expect(problemsIn('steps:\n  - { id: a, run: ls, concurrency: 1000000000 }\n')).toContain(
      'main.yaml:2:36: `concurrency` must be at most 10000, not `1000000000`',
    );
  });

  test('in the number of copies are explained', () => {
    expect(
      problemsIn(`steps:
  - { id: a, run: ls, concurrency: -1 }
  - { id: b, run: ls, concurrency: three }
  - { id: c, run: ls, concurrency: 1.5 }
  - { id: d, run: ls, concurrency: 2, strategy: { matrix: { x: [1] } } }
`),
    ).toMatchInlineSnapshot(`
      "
      main.yaml:2:36: \`concurrency\` must be at least 0, not \`-1\`
         2 |   - { id: a, run: ls, concurrency: -1 }
           |                                    ^^
        hint: write how many copies of the step run, such as \`concurrency: 3\`; for one copy for each item use \`strategy.matrix\`

      main.yaml:3:36: \`concurrency\` must be a number, not \`three\`
         3 |   - { id: b, run: ls, concurrency: three }
           |                                    ^^^^^
        hint: write how many copies of the step run, such as \`concurrency: 3\`; for one copy for each item use \`strategy.matrix\`

      main.yaml:4:36: \`concurrency\` must be a whole number, not \`1.5\`
         4 |   - { id: c, run: ls, concurrency: 1.5 }
           |                                    ^^^
        hint: write how many copies of the step run, such as \`concurrency: 3\`; for one copy for each item use \`strategy.matrix\`

      main.yaml:5:23: \`concurrency\` makes identical copies and \`strategy.matrix\` different ones: a step has one of them
         5 |   - { id: d, run: ls, concurrency: 2, strategy: { matrix: { x: [1] } } }
           |                       ^^^^^^^^^^^
        hint: to limit how many run at once, write \`strategy: { max-parallel: N }\`
      "
    `);
  });

  test.each([
    ['run: ls, strategy: { max-parallel: 2 }', ['[strategy] `strategy` has nothing to multiply the step by']],
    [
      'run: ls, concurrency: 2, strategy: { fail-fast: true, on_failure: continue }',
      ['[fail-fast] `fail-fast` and `on_failure` say the same thing'],
    ],
    [
      'run: ls, concurrency: 2, strategy: { max-parallel: 0 }',
      ['[0] `strategy.max-parallel` must be at least 1, not `0`'],
    ],
    [
      'run: ls, strategy: { matrix: { os: linux } }',
      ['[linux] `strategy.matrix.os` must be a list, not `linux`'],
    ],
    [
      'run: ls, strategy: { matrix: linux }',
      ['[linux] `strategy.matrix` must be a map of lists, or a list of maps, not `linux`'],
    ],
    [
      'run: ls, strategy: { matrix: { os: [a], exclude: [{ os: a }] } }',
      ['[matrix] the matrix has no combination'],
    ],
    [
      'run: ls, strategy: { matrix: { os: [a], exclude: [{ so: a }] } }',
      ['[a] `strategy.matrix.exclude[0].so` is not a key of the matrix, so it excludes nothing'],
    ],
    ['run: ls, strategy: { matrix: { "a b": [1] } }', ['["a b"] `a b` cannot be read as `matrix.<key>`']],
    [
      'run: "echo ${{ matrix.x }}"',
      ['[matrix] `matrix` cannot be read here: this step has no `strategy.matrix`'],
    ],
    [
      'run: "echo ${{ matrix.flie }}", strategy: { matrix: { file: [a] } }',
      ['[matrix.flie] `flie` is not in the matrix of this step'],
    ],
    ['run: "echo ${{ matrix.extra }}", strategy: { matrix: { file: [a], include: [{ extra: 1 }] } }', []],
    ['run: "echo ${{ matrix.any }}", strategy: { matrix: "${{ fromJSON(env.M) }}" }, env: { M: "[]" }', []],
    [
      'run: ls, if: matrix.x == 1, strategy: { matrix: { x: [1] } }',
      ['[matrix] `matrix` cannot be read here: a condition is decided once, before the step becomes many'],
    ],
    [
      'run: ls, strategy: { matrix: { x: ["${{ matrix.y }}"] } }',
      ['[matrix] `matrix` cannot be read here: this is decided once, for all copies of the step'],
    ],
    ['run: ls, strategy: { matrix: { x: "${{ steps.b.outputs }}" } }', ['[steps.b] there is no step `b`']],
    [
      'run: ls, select: { gates: ls }',
      ['[select] `select` picks from several copies, and this step has one'],
    ],
    [
      'run: ls, concurrency: 1, select: { gates: ls }',
      ['[select] `select` picks from several copies, and this step has one'],
    ],
    ['run: ls, concurrency: 2, select: {}', ['[{}] `select` does not say how to pick']],
    [
      'run: ls, concurrency: 2, select: { rank: ls, judge: x }',
      ['[judge] `rank` and `judge` both pick the best copy'],
    ],
    [
      'run: ls, concurrency: 2, workspace: none, select: { rank: ls }',
      ['[rank] `rank` looks at the workspace of a copy, and with `workspace: none` there is none'],
    ],
    [
      'run: ls, concurrency: 2, workspace: { branch: fix }',
      ['[fix] all copies of this step would have the same branch'],
    ],
    [
      'approve: ok?, concurrency: 2',
      [
        '[concurrency] `concurrency` belongs to steps with `run`, `agent` or `uses`, and this one has `approve`',
      ],
    ],
    [
      'approve: ok?, strategy: { matrix: { x: [1] } }',
      ['[strategy] `strategy` belongs to steps with `run`, `agent` or `uses`, and this one has `approve`'],
    ],
    ['run: ls, concurrency: x, select: { gates: ls }', ['[x] `concurrency` must be a number, not `x`']],
    ['run: ls, matrix: { x: [1] }', ['[matrix] a step has no `matrix`']],
  ])('%s', (keys, expected) => {
    expect(shortProblemsIn(`steps: [{ id: a, ${keys} }]`)).toEqual(expected);
  });
});

test('the matrix of a step is not known to others', () => {
  expect(
    shortProblemsIn(`
env: { A: "\${{ matrix.x }}" }
outputs: { o: "\${{ matrix.x }}" }
steps: [{ id: a, run: ls, strategy: { matrix: { x: [1] } } }]
`),
  ).toEqual([
    '[matrix] `matrix` cannot be read here: every step shares this environment, whatever it needs',
    '[matrix] `matrix` cannot be read here: it belongs to the copies of a step',
  ]);
});

test('what a fan-out gives is read like any output', () => {
  const model = load(`
steps:
  - { id: a, run: ls, concurrency: 2 }
  - { id: b, needs: a, agent: x, prompt: "\${{ steps.a.outputs.worker_results[1].output.n }}" }
`);
  const outputs = { worker_results: [{ index: 0 }, { index: 1, output: { n: 5 } }] };
  expect(bodyOf(model, 'b', 'agent').prompt(scopeOf({ steps: { a: succeeded(outputs) } }))).toBe('5');
});
