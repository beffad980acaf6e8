import { describe, expect, test } from 'vitest';
import { z } from 'zod';
import { DefinitionError } from '../problems.ts';
import {
  approve,
  isWorkflow,
  maybe,
  type StepHandle,
  shell,
  step,
  type Workflow,
  workflow,
} from './index.ts';
import { contextOf, scopeOf } from './test-support.ts';

const validate = step('validate', { run: () => ({ total: 12 }) });
const charge = step('charge', { after: { validate }, run: ({ validate }) => validate.total });

function problemsOf(define: () => unknown): string {
  try {
    define();
  } catch (thrown) {
    if (thrown instanceof DefinitionError) return thrown.message;
    throw thrown;
  }
  throw new Error('expected problems');
}

describe('a workflow', () => {
  test('becomes a model that keeps the order of its steps', () => {
    const pay = workflow('pay', {
      steps: [charge, validate],
      description: 'Takes money',
      onFailure: 'continue',
      maxConcurrentWorkers: 3,
      budget: { minutes: 1.5 },
    });
    expect(pay.name).toBe('pay');
    expect(pay.model).toMatchObject({
      name: 'pay',
      description: 'Takes money',
      onFailure: 'continue',
      maxConcurrentWorkers: 3,
      budgetMs: 90_000,
    });
    expect(pay.model.steps.map(({ id }) => id)).toEqual(['charge', 'validate']);
    expect(pay.model.output).toBeUndefined();
  });

  test('fails fast and has no limits by default', () => {
    const { model } = workflow('pay', { steps: [validate] });
    expect(model.onFailure).toBe('fail-fast');
    expect(model).toMatchObject({ maxConcurrentWorkers: undefined, budgetMs: undefined, output: undefined });
  });

  test('returns the outputs of the steps that it names', () => {
    const { model } = workflow('pay', {
      steps: [validate, charge],
      output: { order: validate, paid: maybe(charge) },
    });
    expect(model.output?.(scopeOf({ validate: { total: 1 }, charge: 1 }))).toEqual({
      order: { total: 1 },
      paid: 1,
    });
    expect(model.output?.(scopeOf({ validate: { total: 1 }, charge: undefined }))).toEqual({
      order: { total: 1 },
    });
  });

  test('fails instead of returning less than its type promises', () => {
    const { model } = workflow('pay', { steps: [validate, charge], output: { paid: charge } });
    expect(() => model.output?.(scopeOf({ charge: undefined }))).toThrowErrorMatchingInlineSnapshot(
      `[RepriseError: output "paid" reads step "charge", which has no output because it did not succeed]`,
    );
  });

  test('is recognized even if another copy of the package created it', () => {
    const pay = workflow('pay', { steps: [validate] });
    expect(isWorkflow(pay)).toBe(true);
    expect(isWorkflow({ name: 'pay', model: pay.model, [Symbol.for('reprise.workflow')]: true })).toBe(true);
    expect([{}, null, undefined, 'pay', validate, pay.model].map(isWorkflow)).not.toContain(true);
  });

  test('can share steps with other workflows', () => {
    const one = workflow('one', { steps: [validate] });
    const two = workflow('two', { steps: [validate, charge] });
    expect(two.model.steps[0]).toBe(one.model.steps[0]);
  });

  test('may have 20,000 steps and one that depends on all of them', () => {
    const squares = Array.from({ length: 20_000 }, (_, index) =>
      step(`s${index}`, { run: () => index * index }),
    );
    const join = step('join', {
      after: Object.fromEntries(squares.map(square => [square.id, square])),
      run: outputs => Object.values(outputs).reduce((sum, value) => sum + value, 0),
    });
    const { model } = workflow('big', { steps: [...squares, join], output: { join } });
    expect(model.steps).toHaveLength(20_001);
    const last = model.steps.at(-1);
    expect(last?.needs).toHaveLength(20_000);
    const scope = scopeOf(Object.fromEntries(squares.map(({ id }) => [id, 1])));
    expect(last?.body.kind === 'function' && last.body.run(scope, contextOf())).toBe(20_000);
    expect(new Set(model.steps.map(({ fingerprint }) => fingerprint)).size).toBe(20_001);
  });
});

describe('the definition of a workflow', () => {
  test('reports all problems together', () => {
    const missing = step('missing', { run: () => 1 });
    const steps = [
      step('1st', { run: () => 1 }),
      step('twice', { run: () => 1 }),
      step('twice', { run: () => 2 }),
      step('needy', { after: { missing, gone: maybe(missing) }, run: () => 1 }),
      step('tired', { retry: 0, timeout: 'soon', run: () => 1 }),
      approve('gate', { message: ' ', choices: ['reject'], timeout: 0 }),
      approve('poll', { message: 'Which?', choices: ['a', 'a', ''] }),
      shell('quiet', { run: ' ' }),
    ];
    const define = () =>
      workflow('broken', { steps, output: { missing }, maxConcurrentWorkers: 0, budget: { minutes: -1 } });
    expect(problemsOf(define)).toMatchInlineSnapshot(`
      "workflow "broken": maxConcurrentWorkers must be a whole number of at least 1, not 0

      workflow "broken": budget.minutes must be greater than 0, not -1

      step "1st": the id is not valid
        hint: use letters, digits, _ and -, and start with a letter or _

      step "tired": the number of attempts in retry must be a whole number of at least 1, not 0
        hint: the first attempt counts too

      step "tired": timeout must be a duration, not "soon"
        hint: use milliseconds, or a string such as "30s" or "1h30m"

      step "gate": no choice lets the run continue
        hint: add a choice other than "reject"

      step "gate": \`message\` is empty

      step "gate": timeout must be greater than 0, not 0

      step "poll": duplicate choice "a"

      step "poll": a choice is empty

      step "quiet": \`run\` is empty

      workflow "broken": steps[1] and steps[2] both have the id "twice"
        hint: rename or remove one of them

      step "needy" depends on step "missing", which is not in the steps of workflow "broken"
        hint: add "missing" to \`steps\`, or remove it from \`after\`

      workflow "broken": output.missing reads step "missing", which is not in its steps
        hint: add "missing" to \`steps\`, or remove it from \`output\`"
    `);
  });

  test('requires a name and steps', () => {
    expect(problemsOf(() => workflow('', { steps: [] }))).toMatchInlineSnapshot(`
      "workflow "": its name is empty

      workflow "": it has no steps
        hint: add them: steps: [first, second]"
    `);
  });

  test('distinguishes two steps with the same id', () => {
    const other = step('validate', { run: () => 1 });
    const late = step('late', { after: { other }, run: () => 1 });
    expect(problemsOf(() => workflow('mixed', { steps: [validate, late] }))).toMatchInlineSnapshot(`
      "step "late" depends on a step "validate" that is not the "validate" in \`steps\`
        hint: change the id of one of the two, and list both"
    `);
  });

  test('does not report two steps with the same id as a cycle', () => {
    const back = step('validate', { after: { charge }, run: () => 1 });
    expect(problemsOf(() => workflow('circle', { steps: [back, charge] }))).toMatchInlineSnapshot(`
      "step "charge" depends on a step "validate" that is not the "validate" in \`steps\`
        hint: change the id of one of the two, and list both"
    `);
    const own = step('validate', { after: { validate }, run: () => 1 });
    expect(problemsOf(() => workflow('own', { steps: [own] }))).toMatchInlineSnapshot(`
      "step "validate" depends on a step "validate" that is not the "validate" in \`steps\`
        hint: change the id of one of the two, and list both"
    `);
  });

  test('explains mistakes that only plain JavaScript allows', () => {
    const wrong = <T>(value: unknown): T => value as T;
    const steps = [
      step('early', {
        after: { later: wrong<StepHandle>(undefined), text: wrong<StepHandle>('text') },
        run: () => 1,
      }),
      step('idle', wrong<{ run: () => number }>({})),
      step('child', { uses: wrong<Workflow<undefined>>({ name: 'ship' }) }),
      shell('injected', { run: wrong<string>(() => 'echo') }),
      shell('fish', { run: 'echo', shell: wrong<'sh'>('fish') }),
      wrong<StepHandle>('charge'),
      wrong<StepHandle>(undefined),
    ];
    const define = () =>
      workflow('loose', { steps, onFailure: wrong<'continue'>('stop'), output: { a: wrong<StepHandle>(1) } });
    expect(problemsOf(define)).toMatchInlineSnapshot(`
      "workflow "loose": onFailure must be one of fail-fast, finish-running, continue, not "stop"

      workflow "loose": steps[5] is not a step
        hint: list the results of step(), shell(), agent(), approve() or land()

      workflow "loose": steps[6] is not a step
        hint: list the results of step(), shell(), agent(), approve() or land()

      step "early": after.later is not a step
        hint: it is undefined: define the step above this one, and check for modules that import each other

      step "early": after.text is not a step
        hint: pass the result of step(), shell(), agent(), approve() or land()

      step "idle": it has neither a \`run\` function nor a workflow in \`uses\`
        hint: \`uses\` may be undefined because two modules import each other

      step "child": \`uses\` is not a workflow
        hint: pass the result of workflow()

      step "injected": \`run\` must be a string
        hint: scripts are fixed: pass values through \`env\` and read them as "$NAME"

      step "fish": shell must be one of bash, sh, not "fish"

      workflow "loose": output.a is not a step
        hint: pass the result of step(), shell(), agent(), approve() or land()"
    `);
  });

  test('takes its input contract from a schema', () => {
    const pay = workflow('pay', { input: z.object({ id: z.string() }), steps: [validate] });
    expect(pay.model.input.parse({ id: 'a', extra: 1 })).toEqual({ id: 'a' });
    expect(pay.model.input.fields).toEqual([{ name: 'id', type: 'string', required: true }]);
  });
});
