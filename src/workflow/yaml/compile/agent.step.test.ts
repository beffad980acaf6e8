import { describe, expect, test } from 'vitest';
import { agentNames } from '../../problems.ts';
import { bodyOf, load, problemsIn, scopeOf, shortProblemsIn, stepOf, succeeded } from '../test-support.ts';

const agentStep = (keys: string, prefix = '') =>
  load(`${prefix}\nsteps: [{ id: a, agent: coder, prompt: Do it., ${keys} }]`);
const agentBody = (keys: string) => bodyOf(agentStep(keys), 'a', 'agent');

describe('a step with an agent', () => {
  test('names the agent and works in its own worktree', () => {
    expect(
      bodyOf(load('steps:\n  - id: a\n    agent: coder\n    prompt: Do it.\n'), 'a', 'agent'),
    ).toMatchObject({
      agent: 'coder',
      position: { file: 'main.yaml', line: 3, column: 12 },
      rework: 0,
      work: {
        workspace: { kind: 'worktree', readonly: false, base: { kind: 'run' } },
        setup: [],
        teardown: [],
        checks: [],
        artifacts: [],
      },
    });
  });

  test('has a prompt that reads inputs, variables and needed steps', () => {
    const model = load(`
inputs: { issue: {} }
steps:
  - { id: plan, run: ls }
  - id: fix
    needs: [plan]
    agent: coder
    env: { MODE: fast }
    prompt: "Fix \${{ inputs.issue }} in \${{ steps.plan.outputs.files }}, \${{ env.MODE }}."
`);
    const body = bodyOf(model, 'fix', 'agent');
    const scope = scopeOf({ inputs: { issue: '7' }, steps: { plan: succeeded({ files: ['x'] }) } });
    expect(body.prompt(scope)).toBe('Fix 7 in ["x"], fast.');
    expect(body.env(scope)).toEqual({ MODE: 'fast' });
  });

  test('reads artifacts, branch and commit of a step that it needs', () => {
    const model = load(`
steps:
  - { id: a, agent: coder, prompt: Do it., artifacts: { report: out/report.md } }
  - { id: b, needs: a, agent: coder, prompt: "\${{ steps.a.artifacts.report }} \${{ steps.a.branch }} \${{ steps.a.commit }}" }
`);
    const view = { ...succeeded({}), artifacts: { report: '/state/report.md' }, branch: 'b1', commit: 'c1' };
    expect(bodyOf(model, 'b', 'agent').prompt(scopeOf({ steps: { a: view } }))).toBe(
      '/state/report.md b1 c1',
    );
    expect(bodyOf(model, 'b', 'agent').prompt(scopeOf({ steps: { a: succeeded({}) } }))).toBe('  ');
  });

  test.each([
    ['permissions: read-only', { permissions: { preset: 'read-only', allow: [], deny: [] } }],
    [
      'permissions: { allow: ["Bash(npm test)"], deny: [WebFetch] }',
      { permissions: { allow: ['Bash(npm test)'], deny: ['WebFetch'] } },
    ],
    ['permissions: { preset: full }', { permissions: { preset: 'full', allow: [], deny: [] } }],
    ['max_turns: 5', { maxTurns: 5 }],
    ['on_fail: fail', { rework: 0 }],
    ['on_fail: rework, checks: npm test', { rework: 2, work: { checks: [{ text: 'npm test' }] } }],
    ['on_fail: { rework: 5 }, output: { type: object }', { rework: 5 }],
    ['workspace: none', { work: { workspace: { kind: 'none' } } }],
    ['workspace: readonly', { work: { workspace: { kind: 'worktree', readonly: true } } }],
    ['workspace: { readonly: true }', { work: { workspace: { kind: 'worktree', readonly: true } } }],
    [
      'artifacts: [out/report.md, log.tar.gz]',
      {
        work: {
          artifacts: [
            { name: 'report', path: 'out/report.md' },
            { name: 'log.tar', path: 'log.tar.gz' },
          ],
        },
      },
    ],
  ])('with %s becomes %j', (keys, expected) => {
    expect(agentBody(keys)).toMatchObject(expected);
  });

  test('shows its output schema to the agent and validates the output', () => {
    const schema = { type: 'object', properties: { n: { type: 'number' } }, required: ['n'] };
    const { output } = agentBody(`output: ${JSON.stringify(schema)}`);
    expect(output?.schema).toEqual(schema);
    expect(output?.parse({ n: 1 })).toEqual({ n: 1 });
    expect(() => output?.parse({})).toThrowError(expect.objectContaining({ code: 'OUTPUT_INVALID' }));
  });

  test('has limits for silence, cost, tokens and time', () => {
    expect(
      stepOf(agentStep('timeout: { stall: 1m }, budget: { cost_usd: 2.5, tokens: 1000, minutes: 3 }'), 'a'),
    ).toMatchObject({
      timeout: { stallMs: 60_000, stepMs: 180_000 },
      budget: { costUsd: 2.5, tokens: 1000 },
    });
    expect(stepOf(agentStep('timeout: { step: 1m }, budget: { minutes: 3 }'), 'a').timeout).toEqual({
      stepMs: 60_000,
    });
    expect(
      load('runtime: { budget: { minutes: 1, cost_usd: 3, tokens: 9 } }\nsteps: [{ id: a, run: ls }]'),
    ).toMatchObject({ budgetMs: 60_000, budget: { costUsd: 3, tokens: 9 } });
  });

  test.each(['setup', 'checks', 'teardown'] as const)('passes values to its %s in the environment', key => {
    const model = load(
      `inputs: { x: {} }\nsteps: [{ id: a, agent: coder, prompt: p, env: { A: b }, ${key}: ["echo \${{ inputs.x }}", "true"] }]`,
    );
    const [command, second] = bodyOf(model, 'a', 'agent').work[key];
    expect(command?.text).toBe('echo ${{ inputs.x }}');
    expect(command?.command(scopeOf({ inputs: { x: '$(id)' } }))).toEqual({
      script: 'echo "${REPRISE_VALUE_1}"',
      shell: 'bash',
      env: { A: 'b', REPRISE_VALUE_1: '$(id)' },
    });
    expect(second?.text).toBe('true');
  });
});

describe('a prompt in a file', () => {
  const text = 'inputs: { x: {} }\nsteps: [{ id: a, agent: coder, prompt: { file: prompts/fix.md } }]';

  test('is a template like any other and part of the fingerprint', () => {
    const model = load(text, { prompts: { 'prompts/fix.md': 'Fix ${{ inputs.x }}.\n' } });
    expect(bodyOf(model, 'a', 'agent').prompt(scopeOf({ inputs: { x: 7 } }))).toBe('Fix 7.\n');
    const other = load(text, { prompts: { 'prompts/fix.md': 'Repair ${{ inputs.x }}.\n' } });
    expect(stepOf(other, 'a').fingerprint).not.toBe(stepOf(model, 'a').fingerprint);
    const same = load(text, { prompts: { 'prompts/fix.md': 'Fix ${{ inputs.x }}.\n' } });
    expect(stepOf(same, 'a').fingerprint).toBe(stepOf(model, 'a').fingerprint);
  });

  test('has its problems reported at their positions in the file', () => {
    expect(
      problemsIn(text, { prompts: { 'prompts/fix.md': 'Fix it.\n\nLook at ${{ inputs.y }}.\n' } }),
    ).toMatchInlineSnapshot(`
        "
        prompts/fix.md:3:13: \`inputs.y\` is not declared
           3 | Look at \${{ inputs.y }}.
             |             ^^^^^^^^
          hint: did you mean \`inputs.x\`?
        "
      `);
  });

  test('must exist and must not be empty', () => {
    expect(problemsIn(text)).toMatchInlineSnapshot(`
      "
      main.yaml:2:48: cannot find file \`prompts/fix.md\`
         2 | steps: [{ id: a, agent: coder, prompt: { file: prompts/fix.md } }]
           |                                                ^^^^^^^^^^^^^^
        hint: the path is relative to the folder of this file
      "
    `);
    expect(shortProblemsIn(text, { prompts: { 'prompts/fix.md': ' \n' } })).toEqual([
      '[prompts/fix.md] the file `prompts/fix.md` is empty',
    ]);
  });
});

test('an artifact that a step does not declare cannot be read', () => {
  const steps = (name: string) =>
    `steps: [{ id: a, agent: x, prompt: p, artifacts: [out/report.md] }, { id: b, needs: a, run: "cat \${{ steps.a.artifacts.${name} }}" }]`;
  expect(shortProblemsIn(steps('report'))).toEqual([]);
  expect(shortProblemsIn(steps('reprot'))).toEqual([
    '[steps.a.artifacts.reprot] step `a` has no artifact `reprot`',
  ]);
});

describe('an invalid step with an agent', () => {
  test.each([
    ['agent: coder', ['[coder] an agent requires a `prompt`']],
    ['agent: coder, prompt: 5', ['[5] `prompt` must be a string, or a map with `file`, not `5`']],
    [
      'agent: two words, prompt: p',
      [
        '[two words] `agent` must be an identifier (letters, digits, `_` and `-`, starting with a letter or `_`), not `two words`',
      ],
    ],
    ['agent: a, run: ls', ['[agent] a step cannot have both `run` and `agent`']],
    [
      'run: ls, prompt: p',
      ['[prompt] `prompt` is only allowed in steps with `agent`, but this step has `run`'],
    ],
    [
      'run: ls, on_fail: rework',
      ['[on_fail] `on_fail` is only allowed in steps with `agent`, but this step has `run`'],
    ],
    [
      'approve: ok?, checks: ls',
      ['[checks] `checks` is only allowed in steps with `run` or `agent`, but this step has `approve`'],
    ],
    [
      'uses: x, select: { rank: ls }',
      [
        '[x] cannot find workflow `x`',
        '[select] `select` is only allowed in steps with `run` or `agent`, but this step has `uses`',
      ],
    ],
    ['prompt: p', ['[{ id: a, prompt: p }] step `a` does nothing']],
    [
      'agent: a, prompt: p, permissions: reed-only',
      ['[reed-only] `permissions` must be read-only, edit or full, not `reed-only`'],
    ],
    [
      'agent: a, prompt: p, permissions: { allow: ["Bash()"] }',
      [
        '["Bash()"] `permissions.allow[0]` `Bash()` has empty parentheses: write `Bash` to match every use of the tool',
      ],
    ],
    [
      'agent: a, prompt: p, on_fail: rework',
      ['[on_fail] `on_fail` has no effect, because the step has neither `checks` nor `output`'],
    ],
    [
      'agent: a, prompt: p, on_fail: { rework: 0 }, checks: ls',
      ['[0] `on_fail.rework` must be at least 1, not `0`'],
    ],
    [
      'agent: a, prompt: p, artifacts: [/etc/passwd]',
      ['[/etc/passwd] the path of an artifact must be relative to the workspace'],
    ],
    [
      'agent: a, prompt: p, artifacts: { x: a/../../b }',
      ['[a/../../b] the path of an artifact must stay inside the workspace'],
    ],
    ['agent: a, prompt: p, artifacts: [a/r.md, b/r.txt]', ['[b/r.txt] duplicate artifact name `r`']],
    [
      'agent: a, prompt: p, output: { type: objekt }',
      [
        '[objekt] `output` is not a supported JSON Schema: output.type: must be one of "array", "boolean", "integer", "null", "number", "object", "string", not "objekt"',
      ],
    ],
    [
      'agent: a, prompt: p, output: { properties: { x: { pattern: "^(?!a)b" } } }',
      [
        '[(?!] `output` is not a supported JSON Schema: the pattern `^(?!a)b` uses look-around, `(?!` at character 2, which cannot be matched in linear time',
      ],
    ],
    [
      'agent: a, prompt: p, output: { patternProperties: { "(a)\\\\1": {} } }',
      [
        '["(a)\\\\1"] `output` is not a supported JSON Schema: the pattern `(a)\\1` uses a back-reference, `\\1` at character 4, which cannot be matched in linear time',
      ],
    ],
    [
      'run: ls, timeout: { stall: 1s }',
      ['[stall] `timeout.stall` limits the silence of an agent, but this step has no agent'],
    ],
    ['agent: a, prompt: p, checks: ["echo ${{ inputs.x }}"]', ['[inputs.x] `inputs.x` is not declared']],
    ['agent: a, prompt: p, max-turns: 3', ['[max-turns] `max-turns` is not supported']],
    ['agent: a, prompt: p, budget: { cost_usd: 0 }', ['[0] `budget.cost_usd` must be more than 0, not `0`']],
  ])('such as `%s` has the problems %j', (keys, expected) => {
    expect(shortProblemsIn(`steps: [{ id: a, ${keys} }]`)).toEqual(expected);
  });
});

test('agentNames lists the agents of a workflow with their positions, including judges and child workflows', () => {
  const model = load(
    `
steps:
  - { id: plan, agent: planner, prompt: p }
  - { id: fix, agent: coder, prompt: p, concurrency: 2, select: { judge: critic } }
  - { id: repair, agent: coder, prompt: p, concurrency: 2, select: { judge: { agent: critic, prompt: q } } }
  - { id: sub, uses: ./child.yaml }
  - { id: again, uses: ./child.yaml }
`,
    { others: { './child.yaml': 'steps: [{ id: x, agent: helper, prompt: p }]' } },
  );
  expect(
    agentNames(model).map(
      ({ name, step, position }) => `${name} ${step} ${position?.file}:${position?.line}`,
    ),
  ).toEqual([
    'planner plan main.yaml:3',
    'coder fix main.yaml:4',
    'critic fix main.yaml:4',
    'coder repair main.yaml:5',
    'critic repair main.yaml:5',
    'helper sub/x ./child.yaml:1',
  ]);
});
