import { describe, expect, test } from 'vitest';
import type { Scope } from '../../model.ts';
import { bodyOf, load, problemsIn, scopeOf, shortProblemsIn, stepOf, succeeded } from '../test-support.ts';

const fanOutOf = (keys: string) =>
  stepOf(load(`inputs: { x: { type: json } }\nsteps: [{ id: a, run: ls, ${keys} }]`), 'a').fanOut;
const itemsOf = (keys: string, given?: Partial<Scope>) => fanOutOf(keys)?.items(scopeOf(given));

describe('concurrency', () => {
  test.each([0, 1])('of %i does not fan out', count => {
    expect(fanOutOf(`concurrency: ${count}`)).toBeUndefined();
    expect(fanOutOf(`concurrency: ${count}, strategy: { max-parallel: 2 }`)).toBeUndefined();
  });

  test('makes identical copies', () => {
    expect(fanOutOf('concurrency: 3')).toMatchObject({ kind: 'concurrency', onFailure: 'fail-fast' });
    expect(itemsOf('concurrency: 3')).toEqual([{}, {}, {}]);
  });

  test('gives each copy of a script its own worktree, except with `workspace: none`', () => {
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
  ])('with %s becomes %j', (keys, expected) => {
    expect(fanOutOf(`concurrency: 3, ${keys}`)).toMatchObject(expected);
  });
});

describe('a matrix', () => {
  test('is fixed or computed at run time', () => {
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

  test('may be empty at run time', () => {
    expect(itemsOf('strategy: { matrix: { f: "${{ inputs.x }}" } }', { inputs: { x: [] } })).toEqual([]);
  });

  test.each([
    [
      '{ f: "${{ inputs.x }}" }',
      'a,b',
      '`strategy.matrix.f` must be a list, not `a,b`; the value comes from ${{ inputs.x }}',
    ],
    [
      '"${{ inputs.x }}"',
      7,
      '`strategy.matrix` must be a map of lists, or a list of maps, not `7`; the value comes from ${{ inputs.x }}',
    ],
    [
      '"${{ inputs.x }}"',
      ['a'],
      '`strategy.matrix[0]` must be a map, not `a`; the value comes from ${{ inputs.x }}',
    ],
    [
      '{ f: [1], include: "${{ inputs.x }}" }',
      null,
      '`strategy.matrix.include` must be a list, not empty; the value comes from ${{ inputs.x }}',
    ],
  ])('of %s with the input %j fails at run time', (matrix, x, message) => {
    expect(() => itemsOf(`strategy: { matrix: ${matrix} }`, { inputs: { x } })).toThrowError(
      expect.objectContaining({ code: 'EXPRESSION_FAILED', message }),
    );
  });

  test('can be read by every key of a copy', () => {
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
    if (workspace.kind !== 'worktree' || workspace.base.kind !== 'ref') throw new Error('expected a ref');
    expect([workspace.branch?.(scope), workspace.base.name(scope)]).toEqual(['docs/x.md', 'x.md']);
  });

  test('provides the input of each child workflow', () => {
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
  test('has gates, a rank or a judge', () => {
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

describe('an invalid fan-out', () => {
  test('with a mistyped number does not fill the memory', () => {
    expect(problemsIn('steps:\n  - { id: a, run: ls, concurrency: 1000000000 }\n')).toContain(
      'main.yaml:2:36: `concurrency` must be at most 10000, not `1000000000`',
    );
  });

  const ten = '[0, 1, 2, 3, 4, 5, 6, 7, 8, 9]';
  const thousand = `{ a: ${ten}, b: ${ten}, c: ${ten} }`;

  test('with too many combinations is refused before they are built', () => {
    const axes = Array.from({ length: 9 }, (_, index) => `k${index}: ${ten}`).join(', ');
    expect(shortProblemsIn(`steps: [{ id: a, run: ls, strategy: { matrix: { ${axes} } } }]`)).toEqual([
      expect.stringContaining('`strategy.matrix` must have at most 10000 combinations, not 1000000000'),
    ]);
    const computed = `{ a: "\${{ inputs.x }}", b: ${ten} }`;
    expect(() =>
      itemsOf(`strategy: { matrix: ${computed} }`, { inputs: { x: Array(1001).fill(1) } }),
    ).toThrowError(
      expect.objectContaining({
        code: 'EXPRESSION_FAILED',
        message: '`strategy.matrix` must have at most 10000 combinations, not 10010',
      }),
    );
  });

  test.each(['concurrency: 11', 'strategy: { matrix: { n: [1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11] } }'])(
    'with `%s` and a matrix in a child workflow is multiplied',
    outer => {
      const child = `steps: [{ id: x, uses: d }]`;
      const others = { c: child, d: `steps: [{ id: y, run: ls, strategy: { matrix: ${thousand} } }]` };
      expect(shortProblemsIn(`steps: [{ id: a, ${outer}, uses: c }]`, { others })).toEqual([
        '[c] 11 copies of this step, each with up to 1000 copies of a step, are 11000 copies; at most 10000 are allowed',
      ]);
      expect(shortProblemsIn(`steps: [{ id: a, concurrency: 10, uses: c }]`, { others })).toEqual([]);
    },
  );

  test('with an invalid number of copies is explained', () => {
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
        hint: write the number of copies, such as \`concurrency: 3\`; for one copy per item, use \`strategy.matrix\`

      main.yaml:3:36: \`concurrency\` must be a number, not \`three\`
         3 |   - { id: b, run: ls, concurrency: three }
           |                                    ^^^^^
        hint: write the number of copies, such as \`concurrency: 3\`; for one copy per item, use \`strategy.matrix\`

      main.yaml:4:36: \`concurrency\` must be a whole number, not \`1.5\`
         4 |   - { id: c, run: ls, concurrency: 1.5 }
           |                                    ^^^
        hint: write the number of copies, such as \`concurrency: 3\`; for one copy per item, use \`strategy.matrix\`

      main.yaml:5:23: \`concurrency\` (identical copies) and \`strategy.matrix\` (different copies) cannot be combined
         5 |   - { id: d, run: ls, concurrency: 2, strategy: { matrix: { x: [1] } } }
           |                       ^^^^^^^^^^^
        hint: to limit the number of parallel copies, write \`strategy: { max-parallel: N }\`
      "
    `);
  });

  test.each([
    [
      'run: ls, strategy: { max-parallel: 2 }',
      ['[strategy] `strategy` has no effect, because the step has no copies'],
    ],
    [
      'run: ls, concurrency: 2, strategy: { fail-fast: true, on_failure: continue }',
      ['[fail-fast] `fail-fast` and `on_failure` set the same policy'],
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
      ['[matrix] the matrix has no combinations'],
    ],
    [
      'run: ls, strategy: { matrix: { os: [a], exclude: [{ so: a }] } }',
      ['[a] `strategy.matrix.exclude[0].so` is not a key of the matrix, so it excludes nothing'],
    ],
    [
      'run: ls, strategy: { matrix: { "a b": [1] } }',
      ['["a b"] the matrix key `a b` cannot be read as `matrix.<key>`'],
    ],
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
      ['[matrix] `matrix` cannot be read here: a condition is evaluated once, before the step fans out'],
    ],
    [
      'run: ls, strategy: { matrix: { x: ["${{ matrix.y }}"] } }',
      ['[matrix] `matrix` cannot be read here: this is evaluated once for all copies of the step'],
    ],
    ['run: ls, strategy: { matrix: { x: "${{ steps.b.outputs }}" } }', ['[steps.b] unknown step `b`']],
    [
      'run: ls, select: { gates: ls }',
      ['[select] `select` picks one of several copies, but this step has no copies'],
    ],
    [
      'run: ls, concurrency: 1, select: { gates: ls }',
      ['[select] `select` picks one of several copies, but this step has no copies'],
    ],
    ['run: ls, concurrency: 2, select: {}', ['[{}] `select` does not define how to pick a copy']],
    [
      'run: ls, concurrency: 2, select: { rank: ls, judge: x }',
      ['[judge] `rank` and `judge` both pick the best copy'],
    ],
    [
      'run: ls, concurrency: 2, workspace: none, select: { rank: ls }',
      ['[rank] `rank` needs the workspace of each copy, but `workspace: none` creates none'],
    ],
    [
      'run: ls, concurrency: 2, workspace: { branch: fix }',
      ['[fix] all copies of this step would use the same branch'],
    ],
    [
      'approve: ok?, concurrency: 2',
      [
        '[concurrency] `concurrency` is only allowed in steps with `run`, `agent` or `uses`, but this step has `approve`',
      ],
    ],
    [
      'approve: ok?, strategy: { matrix: { x: [1] } }',
      [
        '[strategy] `strategy` is only allowed in steps with `run`, `agent` or `uses`, but this step has `approve`',
      ],
    ],
    ['run: ls, concurrency: x, select: { gates: ls }', ['[x] `concurrency` must be a number, not `x`']],
    ['run: ls, matrix: { x: [1] }', ['[matrix] `matrix` is not supported']],
  ])('such as `%s` has the problems %j', (keys, expected) => {
    expect(shortProblemsIn(`steps: [{ id: a, ${keys} }]`)).toEqual(expected);
  });
});

test('the matrix of a step cannot be read outside the step', () => {
  expect(
    shortProblemsIn(`
env: { A: "\${{ matrix.x }}" }
outputs: { o: "\${{ matrix.x }}" }
steps: [{ id: a, run: ls, strategy: { matrix: { x: [1] } } }]
`),
  ).toEqual([
    '[matrix] `matrix` cannot be read here: all steps share this environment',
    '[matrix] `matrix` cannot be read here: it only exists in the copies of a step',
  ]);
});

test('the results of a fan-out are read like any output', () => {
  const model = load(`
steps:
  - { id: a, run: ls, concurrency: 2 }
  - { id: b, needs: a, agent: x, prompt: "\${{ steps.a.outputs.worker_results[1].output.n }}" }
`);
  const outputs = { worker_results: [{ index: 0 }, { index: 1, output: { n: 5 } }] };
  expect(bodyOf(model, 'b', 'agent').prompt(scopeOf({ steps: { a: succeeded(outputs) } }))).toBe('5');
});
