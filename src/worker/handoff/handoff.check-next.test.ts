import { describe, expect, test } from 'vitest';
import { type AgentCards, checkNext, type NextAction } from './handoff.ts';

const agents: AgentCards = new Map([
  ['implement', {}],
  ['review', { inputs: { notes: { required: true }, focus: { required: false } } }],
  ['tidy', { inputs: {} }],
]);
const to = (agent: string, args: Record<string, string> = {}): NextAction => ({ kind: 'agent', agent, args });

describe('the next action of a working agent', () => {
  const check = (next: NextAction) => checkNext(next, { agents, role: 'worker' });

  test.each<[NextAction]>([
    [to('implement')],
    [to('implement', { anything: 'goes' })],
    [to('review', { notes: 'x' })],
    [to('review', { notes: 'x', focus: '' })],
    [to('tidy')],
    [{ kind: 'land' }],
    [{ kind: 'give-up', reason: 'x' }],
  ])('is valid: %j', next => {
    expect(check(next)).toBeUndefined();
  });

  test('is rejected with sentences that say what to correct', () => {
    expect(check(to('reviw'))).toMatchInlineSnapshot(
      `"There is no agent \`reviw\`; did you mean \`review\`?"`,
    );
    expect(check(to('Review', { notes: 'x' }))).toMatchInlineSnapshot(
      `"There is no agent \`Review\`; did you mean \`review\`?"`,
    );
    expect(check(to('qa'))).toMatchInlineSnapshot(
      `"There is no agent \`qa\`; the agents are \`implement\`, \`review\`, \`tidy\`."`,
    );
    expect(checkNext(to('qa'), { agents: new Map(), role: 'worker' })).toMatchInlineSnapshot(
      `"There is no agent \`qa\`; there are no agents to hand over to."`,
    );
    expect(check(to('review'))).toMatchInlineSnapshot(`"The agent \`review\` needs the argument \`notes\`."`);
    expect(check(to('review', { notes: '  ' }))).toMatchInlineSnapshot(
      `"The agent \`review\` needs the argument \`notes\`."`,
    );
    expect(check(to('review', { note: 'x', urgency: 'high' }))).toMatchInlineSnapshot(
      `"The agent \`review\` needs the argument \`notes\`. The agent \`review\` has no argument \`note\`; did you mean \`notes\`? The agent \`review\` has no argument \`urgency\`: it takes \`notes\`, \`focus\`."`,
    );
    expect(check(to('tidy', { task: 'x' }))).toMatchInlineSnapshot(
      `"The agent \`tidy\` has no argument \`task\`: it takes none."`,
    );
    expect(check(to('review', { notes: 'x', constructor: 'y' }))).toMatchInlineSnapshot(
      `"The agent \`review\` has no argument \`constructor\`: it takes \`notes\`, \`focus\`."`,
    );
    expect(check({ kind: 'sleep' })).toMatchInlineSnapshot(
      `"Only a dispatcher can end with \`sleep\`: hand over to an agent, or end with \`land\` or \`give-up\`."`,
    );
  });
});

describe('the next action of a dispatcher', () => {
  const check = (next: NextAction, tasks = ['fix-readme', 'add-tests']) =>
    checkNext(next, { agents, role: 'dispatch', tasks });

  test('is valid if it names a ready task or is `sleep`', () => {
    expect(check(to('implement', { task: 'fix-readme' }))).toBeUndefined();
    expect(check(to('review', { task: 'add-tests', notes: 'x' }))).toBeUndefined();
    expect(check({ kind: 'sleep' })).toBeUndefined();
  });

  test('is rejected with sentences that say what to correct', () => {
    expect(check(to('implement'))).toMatchInlineSnapshot(
      `"The argument \`task\` is missing; the ready tasks are \`fix-readme\`, \`add-tests\`."`,
    );
    expect(check(to('implement', { task: 'fix-raedme' }))).toMatchInlineSnapshot(
      `"The task \`fix-raedme\` cannot be picked; did you mean \`fix-readme\`?"`,
    );
    expect(check(to('implement', { task: 'other' }))).toMatchInlineSnapshot(
      `"The task \`other\` cannot be picked; the ready tasks are \`fix-readme\`, \`add-tests\`."`,
    );
    expect(check(to('implement', { task: 'other' }), [])).toMatchInlineSnapshot(
      `"The task \`other\` cannot be picked; no task is ready: end with \`sleep\`."`,
    );
    expect(check(to('tidy', { task: 'fix-readme', notes: 'x' }))).toMatchInlineSnapshot(
      `"The agent \`tidy\` has no argument \`notes\`: it takes none."`,
    );
    expect(check(to('reviw', {}))).toMatchInlineSnapshot(
      `"There is no agent \`reviw\`; did you mean \`review\`? The argument \`task\` is missing; the ready tasks are \`fix-readme\`, \`add-tests\`."`,
    );
    expect(check({ kind: 'land' })).toMatchInlineSnapshot(
      `"A dispatcher cannot end with \`land\`: name an agent and a task, or end with \`sleep\`."`,
    );
  });
});
