import { describe, expect, test } from 'vitest';
import type { Json } from '../../core/json.ts';
import type { Scope, StepModel, WorkflowModel } from '../model.ts';
import { loadWorkflow } from './load.ts';

const load = (text: string, others: Readonly<Record<string, string>> = {}): WorkflowModel =>
  loadWorkflow({
    file: '/project/.reprise/workflows/fix.yaml',
    displayFile: '.reprise/workflows/fix.yaml',
    text,
    resolve: reference => {
      const child = Object.hasOwn(others, reference) ? others[reference] : undefined;
      return child === undefined ? undefined : { file: `/project/${reference}`, text: child };
    },
  });

const stepOf = (model: WorkflowModel, id: string): StepModel => {
  const step = model.steps.find(candidate => candidate.id === id);
  if (!step) throw new Error(`no step ${id}`);
  return step;
};

const scope = (given: Partial<Scope> = {}): Scope => ({ inputs: {}, steps: {}, status: 'success', ...given });
const succeeded = (outputs: Json) => ({ outcome: 'success', conclusion: 'success', outputs }) as const;

const commandOf = (step: StepModel, given?: Partial<Scope>) => {
  if (step.body.kind !== 'run') throw new Error('not a run step');
  return step.body.command(scope(given));
};

describe('a workflow', () => {
  test('has the name of its file and default settings if it sets none', () => {
    expect(load('steps: [{ id: a, run: ls }]')).toMatchObject({
      name: 'fix',
      file: '/project/.reprise/workflows/fix.yaml',
      onFailure: 'fail-fast',
      input: { fields: [] },
    });
  });

  test('takes its settings from its keys', () => {
    const model = load(`
name: Fix it
description: Fixes an issue.
on_failure: finish-running
runtime: { max_concurrent_workers: 3, budget: { minutes: 1.5 } }
steps: [{ id: a, run: ls }]
`);
    expect(model).toMatchObject({
      name: 'Fix it',
      description: 'Fixes an issue.',
      onFailure: 'finish-running',
      maxConcurrentWorkers: 3,
      budgetMs: 90_000,
    });
  });

  test('computes its outputs from any step and keeps their types', () => {
    const model = load(`
env: { WHO: "\${{ inputs.who }}" }
inputs: { who: {} }
outputs:
  files: \${{ steps.a.outputs.files }}
  text: "files: \${{ steps.a.outputs.files }} for \${{ env.WHO }}"
  nested: { b: ["\${{ steps.b.outcome }}", 1] }
steps: [{ id: a, run: ls }, { id: b, run: ls }]
`);
    const steps = {
      a: succeeded({ files: ['x'] }),
      b: { outcome: 'failure', conclusion: 'success', outputs: undefined },
    } as const;
    expect(model.output?.(scope({ inputs: { who: 'Ada' }, steps }))).toEqual({
      files: ['x'],
      text: 'files: ["x"] for Ada',
      nested: { b: ['failure', 1] },
    });
  });

  test('may use YAML anchors', () => {
    const model = load(
      'env: &e { A: "1" }\nsteps:\n  - { id: a, run: &s echo hi, env: *e }\n  - { id: b, run: *s }\n',
    );
    expect(commandOf(stepOf(model, 'b'))).toMatchObject({ script: 'echo hi', env: { A: '1' } });
  });
});

describe('a step', () => {
  test('has its position in the file and no needs by default', () => {
    expect(load('steps:\n  - id: a\n    run: ls\n').steps).toMatchObject([
      {
        id: 'a',
        needs: [],
        optional: false,
        timeout: {},
        position: { file: '.reprise/workflows/fix.yaml', line: 2, column: 5 },
      },
    ]);
  });

  test.each<[string, StepModel['needs']]>([
    ['needs: a', [{ id: 'a', tolerant: false }]],
    [
      'needs: [b, a, b]',
      [
        { id: 'b', tolerant: false },
        { id: 'a', tolerant: false },
      ],
    ],
    [
      'needs: [a, b], if: always()',
      [
        { id: 'a', tolerant: true },
        { id: 'b', tolerant: true },
      ],
    ],
    ['needs: [a], if: "inputs == 1 || !cancelled()"', [{ id: 'a', tolerant: true }]],
    ['needs: [a], if: "inputs == 1"', [{ id: 'a', tolerant: false }]],
  ])('with %s has the needs %j', (keys, expected) => {
    const model = load(`steps: [{ id: a, run: ls }, { id: b, run: ls }, { id: c, run: ls, ${keys} }]`);
    expect(stepOf(model, 'c').needs).toEqual(expected);
  });

  test.each<[string, Partial<Scope>, boolean]>([
    ['inputs.x', { inputs: { x: 'yes' } }, true],
    ['inputs.x', { inputs: { x: '' } }, false],
    ['"${{ inputs.x }}"', { inputs: { x: 1 } }, true],
    ['inputs.x', { inputs: { x: 'yes' }, status: 'failure' }, false],
    ['always()', { status: 'cancelled' }, true],
    ['failure()', { status: 'failure' }, true],
    ['failure()', { status: 'success' }, false],
    ['true', {}, true],
    ['false', {}, false],
    ["env.A == 'b'", {}, true],
  ])('with `if: %s` in the scope %j runs: %s', (condition, given, expected) => {
    const model = load(
      `inputs: { x: { type: json } }\nsteps: [{ id: a, env: { A: b }, if: ${condition}, run: ls }]`,
    );
    expect(stepOf(model, 'a').condition?.(scope(given))).toBe(expected);
  });

  test.each([
    ['retry: 3', { attempts: 3, backoff: { initialMs: 1000, factor: 2, maxMs: 300_000 } }],
    [
      'retry: { attempts: 2, backoff: 10m }',
      { attempts: 2, backoff: { initialMs: 600_000, factor: 1, maxMs: 600_000 } },
    ],
    [
      'retry: { attempts: 2, backoff: { initial: 10m } }',
      { attempts: 2, backoff: { initialMs: 600_000, factor: 2, maxMs: 600_000 } },
    ],
    [
      'retry: { attempts: 2, backoff: { factor: 3, max: 1m } }',
      { attempts: 2, backoff: { initialMs: 1000, factor: 3, maxMs: 60_000 } },
    ],
  ])('with %s is retried', (keys, expected) => {
    expect(stepOf(load(`steps: [{ id: a, run: ls, ${keys} }]`), 'a').retry).toEqual(expected);
  });

  test('is retried only for the named errors', () => {
    const { retry } = stepOf(
      load('steps: [{ id: a, run: ls, retry: { attempts: 2, on: [TIMEOUT, TypeError] } }]'),
      'a',
    );
    expect(retry?.retries?.({ code: 'TIMEOUT', message: '' })).toBe(true);
    expect(retry?.retries?.({ code: 'STEP_FAILED', name: 'TypeError', message: '' })).toBe(true);
    expect(retry?.retries?.({ code: 'STEP_FAILED', message: '' })).toBe(false);
  });

  test.each([
    ['timeout: 30s', { attemptMs: 30_000 }],
    ['timeout: { attempt: 1m, step: 1h }', { attemptMs: 60_000, stepMs: 3_600_000 }],
    ['timeout-minutes: 0.5', { stepMs: 30_000 }],
    ['timeout: 10s, timeout-minutes: 1', { attemptMs: 10_000, stepMs: 60_000 }],
  ])('with %s has the timeout %j', (keys, expected) => {
    expect(stepOf(load(`steps: [{ id: a, run: ls, ${keys} }]`), 'a').timeout).toEqual(expected);
  });

  test('that is an approval has a timeout for the step, but none for an attempt', () => {
    const timeoutOf = (keys: string) =>
      stepOf(load(`steps: [{ id: a, approve: "ok?", ${keys} }]`), 'a').timeout;
    expect(timeoutOf('timeout: 30s')).toEqual({ stepMs: 30_000 });
    expect(timeoutOf('timeout: { attempt: 1m, step: 1h }')).toEqual({ stepMs: 3_600_000 });
  });
});

describe('a script', () => {
  test('gets values through its environment and never as code', () => {
    const model = load(`
env: { WHO: "\${{ inputs.who }}", BOTH: workflow, N: 5, OFF: false, EMPTY: }
inputs: { who: {} }
steps:
  - { id: a, run: ls }
  - id: b
    needs: [a]
    shell: sh
    working-directory: packages/\${{ inputs.who }}
    env: { BOTH: "step after \${{ env.BOTH }}", FILES: "\${{ steps.a.outputs.files }}" }
    run: |
      echo \${{ env.BOTH }} "\${{ steps.a.outputs.files[0] }}"
`);
    const command = commandOf(stepOf(model, 'b'), {
      inputs: { who: '$(id)' },
      steps: { a: succeeded({ files: ['x;y'] }) },
    });
    expect(command).toEqual({
      script: 'echo "${REPRISE_VALUE_1}" "${REPRISE_VALUE_2}"\n',
      shell: 'sh',
      workingDirectory: 'packages/$(id)',
      env: {
        WHO: '$(id)',
        BOTH: 'step after workflow',
        N: '5',
        OFF: 'false',
        EMPTY: '',
        FILES: '["x;y"]',
        REPRISE_VALUE_1: 'step after workflow',
        REPRISE_VALUE_2: 'x;y',
      },
    });
  });

  test.each(['env: { A: "${{ inputs.x }}" }, run: ls', 'run: "echo ${{ inputs.x }}"'])(
    'with %s rejects a NUL',
    keys => {
      const model = load(`inputs: { x: {} }\nsteps: [{ id: a, ${keys} }]`);
      expect(() => commandOf(stepOf(model, 'a'), { inputs: { x: 'a\0' } })).toThrowError(
        expect.objectContaining({ code: 'EXPRESSION_FAILED' }),
      );
    },
  );

  test('has its output validated against its schema', () => {
    const { body } = stepOf(
      load(
        'steps: [{ id: a, run: ls, output: { type: object, properties: { n: { type: number } }, required: [n] } }]',
      ),
      'a',
    );
    const parse = body.kind === 'run' ? body.parseOutput : undefined;
    expect(parse?.({ n: 1, more: true })).toEqual({ n: 1, more: true });
    expect(() => parse?.({ n: 'x' })).toThrowError(
      expect.objectContaining({ code: 'OUTPUT_INVALID', message: expect.stringContaining('output.n: ') }),
    );
  });
});

describe('an approval', () => {
  test.each([
    ['approve: "Land ${{ inputs.x }}?"', { message: 'Land 7?', choices: ['approve', 'reject'] }],
    ['approve: { message: "Which?", choices: [a, b] }', { message: 'Which?', choices: ['a', 'b'] }],
  ])('with %s requests %j', (keys, expected) => {
    const { body } = stepOf(load(`inputs: { x: {} }\nsteps: [{ id: a, ${keys} }]`), 'a');
    expect(body.kind === 'approve' && body.request(scope({ inputs: { x: '7' } }))).toEqual(expected);
  });
});

describe('a child workflow', () => {
  const child = 'inputs: { files: { type: json, required: true }, note: {} }\nsteps: [{ id: x, run: ls }]\n';

  test('is loaded once and gets its input with the original types', () => {
    const model = load(
      `steps:
  - { id: a, run: ls }
  - { id: b, needs: a, uses: ./child.yaml, with: { files: "\${{ steps.a.outputs.files }}", note: "n=\${{ steps.a.outputs.n }}" } }
  - { id: c, needs: a, uses: ./child.yaml, with: { files: [1, "\${{ steps.a.outputs.n }}"] } }
`,
      { './child.yaml': child },
    );
    const [b, c] = [stepOf(model, 'b').body, stepOf(model, 'c').body];
    if (b.kind !== 'uses' || c.kind !== 'uses') throw new Error('not a child');
    expect(b.workflow).toMatchObject({ name: 'child', steps: [{ id: 'x' }] });
    expect(c.workflow).toBe(b.workflow);
    const given = scope({ steps: { a: succeeded({ files: ['x'], n: 3 }) } });
    expect(b.input(given)).toEqual({ files: ['x'], note: 'n=3' });
    expect(c.input(given)).toEqual({ files: [1, 3] });
  });

  test('is resolved relative to the file that uses it', () => {
    const resolved: [string, string][] = [];
    const texts: Readonly<Record<string, string>> = {
      './a.yaml': 'steps: [{ id: x, uses: ./b.yaml }]',
      './b.yaml': 'steps: [{ id: y, run: ls }]',
    };
    loadWorkflow({
      file: '/main.yaml',
      text: 'steps: [{ id: a, uses: ./a.yaml }]',
      resolve: (reference, fromFile) => {
        resolved.push([reference, fromFile]);
        return { file: `/sub/${reference.slice(2)}`, text: texts[reference] ?? '' };
      },
    });
    expect(resolved).toEqual([
      ['./a.yaml', '/main.yaml'],
      ['./b.yaml', '/sub/a.yaml'],
    ]);
  });
});

describe('the fingerprint of a step', () => {
  const fingerprint = (text: string, others?: Readonly<Record<string, string>>) =>
    stepOf(load(text, others), 'a').fingerprint;
  const original = fingerprint('env: { X: "1" }\nsteps:\n  - { id: a, run: ls, optional: true }\n');

  test.each([
    ['a different order of keys', 'steps:\n  - { optional: true, run: ls, id: a }\nenv: { X: "1" }\n'],
    [
      'a different YAML style and comments',
      '# why\nenv:\n  X: "1"\nsteps:\n\n  - id: a # first\n    run: "ls"\n    optional: true\n',
    ],
    [
      'an additional step',
      'env: { X: "1" }\nsteps:\n  - { id: b, run: other }\n  - { id: a, run: ls, optional: true }\n',
    ],
    [
      'a different description',
      'description: new\nenv: { X: "1" }\nsteps:\n  - { id: a, run: ls, optional: true }\n',
    ],
  ])('does not change with %s', (_, text) => {
    expect(fingerprint(text)).toBe(original);
  });

  test.each([
    ['a different script', 'env: { X: "1" }\nsteps:\n  - { id: a, run: pwd, optional: true }\n'],
    ['an additional key', 'env: { X: "1" }\nsteps:\n  - { id: a, run: ls, optional: true, retry: 2 }\n'],
    ['a different environment', 'env: { X: "2" }\nsteps:\n  - { id: a, run: ls, optional: true }\n'],
  ])('changes with %s', (_, text) => {
    expect(fingerprint(text)).not.toBe(original);
  });

  test('changes with the settings of its child workflow, but not with the steps inside', () => {
    const text = 'steps: [{ id: a, uses: mid }]';
    const mid = 'steps: [{ id: m, uses: leaf }]';
    const before = fingerprint(text, { mid, leaf: 'steps: [{ id: l, run: one }]' });
    expect(fingerprint(text, { mid, leaf: 'steps: [{ id: l, run: one }] # comment' })).toBe(before);
    expect(fingerprint(text, { mid, leaf: 'steps: [{ id: l, run: two }]' })).toBe(before);
    expect(
      fingerprint(text, { mid: `on_failure: continue\n${mid}`, leaf: 'steps: [{ id: l, run: one }]' }),
    ).not.toBe(before);
  });
});

test('brackets in a script do not count as nesting', () => {
  expect(load(`steps: [{ id: a, run: "echo ${'['.repeat(500)}" }]`).steps).toHaveLength(1);
});
