import { describe, expect, test } from 'vitest';
import { z } from 'zod';
import * as mini from 'zod/mini';
import type { AgentBody, StepModel } from '../model.ts';
import { agentNames } from '../problems.ts';
import { agent, approve, land, shell, step, workflow } from './index.ts';
import { scopeOf } from './test-support.ts';

const modelsOf = (...steps: Parameters<typeof workflow>[1]['steps']) => workflow('w', { steps }).model.steps;

function only(kind: 'agent', steps: readonly StepModel[]): AgentBody {
  const body = steps.at(-1)?.body;
  if (body?.kind !== kind) throw new Error(`the last step is ${body?.kind}`);
  return body;
}

const problemsOf = (...steps: Parameters<typeof workflow>[1]['steps']): readonly string[] => {
  try {
    modelsOf(...steps);
  } catch (error) {
    return (error as { problems: readonly { message: string }[] }).problems.map(({ message }) => message);
  }
  return [];
};

const plan = agent('plan', {
  agent: 'planner',
  prompt: 'Plan it.',
  output: z.object({ files: z.array(z.string()) }),
});

describe('an agent step', () => {
  test('computes its prompt and environment from its dependencies', () => {
    const fix = agent('fix', {
      after: { plan },
      agent: 'coder',
      prompt: ({ plan }) => `Fix ${plan.files.join()}.`,
      env: ({ plan }) => ({ COUNT: plan.files.length }),
      checks: ['npm test'],
      rework: 3,
      permissions: { preset: 'edit', allow: ['Bash(npm test)'] },
      maxTurns: 9,
      artifacts: ['out/report.md'],
      setup: ['npm ci'],
    });
    const body = only('agent', modelsOf(plan, fix));
    const scope = scopeOf({ plan: { files: ['a', 'b'] } });
    expect(body.prompt(scope)).toBe('Fix a,b.');
    expect(body.env(scope)).toEqual({ COUNT: '2' });
    expect(body.work.checks[0]?.command(scope)).toEqual({
      script: 'npm test',
      shell: 'bash',
      env: { COUNT: '2' },
    });
    expect(body).toMatchObject({
      agent: 'coder',
      rework: 3,
      maxTurns: 9,
      permissions: { preset: 'edit', allow: ['Bash(npm test)'], deny: [] },
      work: {
        workspace: { kind: 'worktree', readonly: false, base: { kind: 'step', id: 'plan' } },
        setup: [{ text: 'npm ci' }],
        artifacts: [{ name: 'report', path: 'out/report.md' }],
      },
    });
  });

  test('shows the JSON Schema of its output to the agent and validates the output', () => {
    const { output } = only('agent', modelsOf(plan));
    expect(output?.schema).toEqual({
      type: 'object',
      properties: { files: { type: 'array', items: { type: 'string' } } },
      required: ['files'],
    });
    expect(() => output?.parse({ files: [1] })).toThrowError(
      expect.objectContaining({ code: 'OUTPUT_INVALID' }),
    );
  });

  test('has timeouts and a budget', () => {
    const [model] = modelsOf(
      agent('a', {
        agent: 'x',
        prompt: 'p',
        timeout: { stall: '1m' },
        budget: { costUsd: 2, tokens: 10, minutes: 1 },
      }),
    );
    expect(model).toMatchObject({
      timeout: { stallMs: 60_000, stepMs: 60_000 },
      budget: { costUsd: 2, tokens: 10 },
    });
  });

  test('has a fingerprint that covers all of its options', () => {
    const prints = [
      agent('a', { agent: 'x', prompt: 'p' }),
      agent('a', { agent: 'y', prompt: 'p' }),
      agent('a', { agent: 'x', prompt: 'q' }),
      agent('a', { agent: 'x', prompt: () => 'p' }),
      agent('a', { agent: 'x', prompt: 'p', concurrency: 2 }),
      agent('a', { agent: 'x', prompt: 'p', checks: ['ls'] }),
      agent('a', { agent: 'x', prompt: 'p', output: z.object({ n: z.number() }) }),
    ].map(handle => modelsOf(handle)[0]?.fingerprint);
    expect(new Set(prints).size).toBe(prints.length);
    expect(modelsOf(agent('a', { prompt: 'p', agent: 'x' }))[0]?.fingerprint).toBe(prints[0]);
  });

  test('keeps its fingerprint and needs when its workspace is placed', () => {
    const first = agent('first', { agent: 'x', prompt: 'p' });
    const second = agent('second', { after: { first }, agent: 'x', prompt: 'p' });
    const [, placed] = modelsOf(first, second);
    expect(placed?.body).toMatchObject({ work: { workspace: { base: { kind: 'step', id: 'first' } } } });
    expect(placed?.fingerprint).toMatch(/^[0-9a-f]{16}$/);
    expect(placed?.needs).toEqual([{ id: 'first', tolerant: false }]);
  });
});

describe('the copies of a step', () => {
  test('are identical with `concurrency`, and `select` picks the best', () => {
    const best = agent('best', {
      after: { plan },
      agent: 'coder',
      prompt: 'p',
      concurrency: 3,
      maxParallel: 2,
      select: {
        gates: ['npm test'],
        judge: { agent: 'critic', prompt: ({ plan }) => `About ${plan.files}` },
      },
    });
    const steps = modelsOf(plan, best);
    const fanOut = steps[1]?.fanOut;
    const scope = scopeOf({ plan: { files: ['a'] } });
    expect(fanOut).toMatchObject({
      kind: 'concurrency',
      maxParallel: 2,
      onFailure: 'continue',
      select: { gates: [{ text: 'npm test' }], judge: { agent: 'critic' } },
    });
    expect(fanOut?.items(scope)).toEqual([{}, {}, {}]);
    expect(fanOut?.select?.judge?.prompt?.(scope)).toBe('About a');
    expect(agentNames({ ...workflow('w', { steps: [plan, best] }).model }).map(({ name }) => name)).toEqual([
      'planner',
      'coder',
      'critic',
    ]);
  });

  test('get one item each with `matrix`', () => {
    const docs = agent('docs', {
      after: { plan },
      matrix: ({ plan }) => plan.files.map(file => ({ file })),
      agent: 'coder',
      prompt: (_, __, { file }) => `Document ${file}`,
      workspace: { branch: (_, __, { file }) => `docs/${file}` },
    });
    const [, model] = modelsOf(plan, docs);
    const scope = scopeOf({ plan: { files: ['a', 'b'] } });
    expect(model?.fanOut?.items(scope)).toEqual([{ file: 'a' }, { file: 'b' }]);
    const body = only('agent', [model as StepModel]);
    expect(body.prompt({ ...scope, matrix: { file: 'a' } })).toBe('Document a');
    const { workspace } = body.work;
    expect(workspace.kind === 'worktree' && workspace.branch?.({ ...scope, matrix: { file: 'a' } })).toBe(
      'docs/a',
    );
  });

  test('may run functions, scripts and child workflows', () => {
    const child = workflow('child', {
      input: z.object({ n: z.number() }),
      steps: [step('x', { run: () => 1 })],
    });
    const steps = modelsOf(
      step('f', { concurrency: 2, run: (_, { worker }) => worker ?? -1 }),
      shell('s', { matrix: [{ n: 1 }], run: 'echo "$N"', env: (_, __, { n }) => ({ N: n }) }),
      step('c', { uses: child, matrix: [{ n: 1 }, { n: 2 }], with: (_, __, { n }) => ({ n }) }),
      step('one', { concurrency: 1, run: () => 1 }),
    );
    const scope = { ...scopeOf({}), matrix: { n: 2 } };
    expect(steps.map(({ fanOut }) => fanOut?.items(scope).length)).toEqual([2, 1, 2, undefined]);
    const [, script, uses] = steps.map(({ body }) => body);
    expect(script?.kind === 'run' && [script.command(scope).env, script.work?.workspace.kind]).toEqual([
      { N: '2' },
      'worktree',
    ]);
    expect(uses?.kind === 'uses' && uses.input(scope)).toEqual({ n: 2 });
  });

  test('fail at run time if the matrix is not a list of objects', () => {
    const [, model] = modelsOf(
      plan,
      // @ts-expect-error: plain JavaScript can do this
      agent('a', { after: { plan }, agent: 'x', prompt: 'p', matrix: ({ plan }) => plan.files }),
    );
    expect(() => model?.fanOut?.items(scopeOf({ plan: { files: ['a'] } }))).toThrowError(
      expect.objectContaining({ code: 'EXPRESSION_FAILED' }),
    );
  });
});

describe('a workspace', () => {
  test('starts from the same base as in YAML', () => {
    const fix = agent('fix', { agent: 'x', prompt: 'p' });
    const gate = approve('gate', { after: { fix }, message: 'Continue?' });
    const lint = shell('lint', { after: { gate }, run: 'npm run lint' });
    const other = shell('other', { after: { gate }, run: 'ls', workspace: 'none' });
    const at = agent('at', {
      after: { lint },
      agent: 'x',
      prompt: 'p',
      workspace: { base: 'main', readonly: true },
    });
    const bodies = modelsOf(fix, gate, lint, other, at).map(({ body }) =>
      body.kind === 'run' || body.kind === 'agent' ? body.work?.workspace : undefined,
    );
    expect(bodies).toMatchObject([
      { base: { kind: 'run' } },
      undefined,
      { base: { kind: 'step', id: 'fix' } },
      { kind: 'none' },
      { readonly: true, base: { kind: 'ref' } },
    ]);
  });
});

describe('a landing', () => {
  const fix = agent('fix', { agent: 'x', prompt: 'p' });

  test('has a source step, a target branch and a verification', () => {
    const [, model] = modelsOf(
      fix,
      land('land', { after: { work: fix }, from: 'work', onto: () => 'main', verify: 'npm test' }),
    );
    if (model?.body.kind !== 'land') throw new Error('no landing');
    expect(model.body).toMatchObject({ from: 'fix', verify: { text: 'npm test' } });
    expect(model.body.onto(scopeOf({}))).toBe('main');
  });

  test('finds the only work before it', () => {
    const ok = approve('ok', { after: { fix }, message: 'Land it?' });
    const [, , model] = modelsOf(fix, ok, land('land', { after: { ok }, onto: 'main' }));
    expect(model?.body).toMatchObject({ from: 'fix' });
  });
});

describe('an invalid step', () => {
  const base = { agent: 'x', prompt: 'p' } as const;
  const plainStep = step('plain', { run: () => 1 });

  test.each<[string, ReturnType<typeof agent>, readonly string[]]>([
    ['an empty prompt', agent('a', { ...base, prompt: ' ' }), ['step "a": `prompt` is empty']],
    ['no agent', agent('a', { ...base, agent: '' }), ['step "a": `agent` is empty']],
    [
      'a negative number of copies',
      agent('a', { ...base, concurrency: -1 }),
      ['step "a": concurrency must be a whole number of at least 0, not -1'],
    ],
    [
      'half a copy',
      agent('a', { ...base, concurrency: 1.5 }),
      ['step "a": concurrency must be a whole number of at least 0, not 1.5'],
    ],
    [
      'copies and a matrix',
      agent('a', { ...base, concurrency: 2, matrix: [{ a: 1 }] }),
      ['step "a": `concurrency` and `matrix` cannot be combined'],
    ],
    [
      'too many copies',
      agent('a', { ...base, concurrency: 10_001 }),
      ['step "a": `concurrency` must be at most 10000, not 10001'],
    ],
    [
      'too many items',
      agent('a', { ...base, matrix: Array.from({ length: 10_001 }, () => ({ a: 1 })) }),
      ['step "a": `matrix` must have at most 10000 items, not 10001'],
    ],
    ['an empty matrix', agent('a', { ...base, matrix: [] }), ['step "a": `matrix` is empty']],
    [
      'a selection without copies',
      agent('a', { ...base, select: { rank: 'ls' } }),
      ['step "a": `select` picks one of several copies, but this step has no copies'],
    ],
    [
      'two ways to pick',
      agent('a', { ...base, concurrency: 2, select: { rank: 'ls', judge: 'x' } }),
      ['step "a": `rank` and `judge` both pick the best copy'],
    ],
    [
      'no way to pick',
      agent('a', { ...base, concurrency: 2, select: {} }),
      ['step "a": `select` does not define how to pick a copy'],
    ],
    [
      'nothing to rework',
      agent('a', { ...base, rework: 1 }),
      ['step "a": `rework` has no effect, because the step has neither `checks` nor `output`'],
    ],
    [
      'an invalid rule',
      agent('a', { ...base, permissions: { allow: ['Bash()'] } }),
      ['step "a": `Bash()` has empty parentheses: write `Bash` to match every use of the tool'],
    ],
    [
      'an artifact outside the workspace',
      agent('a', { ...base, artifacts: ['../x'] }),
      ['step "a": the path "../x" of an artifact must stay inside the workspace'],
    ],
    [
      'one branch for all copies',
      agent('a', { ...base, concurrency: 2, workspace: { branch: 'b' } }),
      ['step "a": all copies of this step would use the same branch'],
    ],
    [
      'a budget of 0',
      agent('a', { ...base, budget: { costUsd: 0 } }),
      ['step "a": budget.costUsd must be greater than 0, not 0'],
    ],
    [
      'a schema that JSON Schema cannot express',
      agent('a', { ...base, output: z.object({ d: z.date() }) }),
      [
        'step "a": the `output` schema cannot be shown to an agent: Date cannot be represented in JSON Schema',
      ],
    ],
    [
      'a schema without `toJSONSchema`',
      agent('a', { ...base, output: mini.object({}) }),
      ['step "a": the `output` schema cannot be shown to an agent: the schema has no `toJSONSchema`'],
    ],
  ])('with %s is reported', (_, handle, expected) => {
    expect(problemsOf(handle)).toEqual(expected);
  });

  test('with a wrong base or source is reported', () => {
    expect(problemsOf(plainStep, land('land', { after: { plainStep }, onto: 'main' }))).toEqual([
      'step "land": no earlier step leaves work to land',
    ]);
    const away = agent('away', { ...base, workspace: { base: 'plain' } });
    expect(problemsOf(plainStep, away)).toEqual([
      'step "away": step `away` cannot start from the work of step `plain` without depending on it',
    ]);
    // @ts-expect-error: `from` is a name in `after`
    const nowhere = land('land', { after: { plainStep }, from: 'other', onto: 'main' });
    expect(problemsOf(plainStep, nowhere)).toEqual([
      'step "land": `from` names "other", which is not in `after`',
    ]);
  });
});
