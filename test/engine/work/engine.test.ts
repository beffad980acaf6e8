import { expect, test } from 'vitest';
import { Lab } from '../../../src/git/test-support.ts';
import { markedWith } from '../../../src/process/tree.ts';
import type { Body, StepModel, WorkflowModel } from '../../../src/workflow/model.ts';
import { deferred, summary, testEngine } from '../../support/engine.ts';
import { agentBody, agentOf, command } from './support.ts';

const step = (id: string, body: Body, given: Partial<StepModel> = {}): StepModel => ({
  id,
  needs: [],
  optional: false,
  timeout: {},
  body,
  fingerprint: id,
  ...given,
});

test('three copies run in parallel, one passes the gate, and its work is landed', async () => {
  const lab = new Lab();
  lab.git('config', 'user.name', 'x');
  lab.write('.git/info/exclude', '.reprise\n');
  const agent = agentOf({
    command: ['sh', '-c', '[ $REPRISE_WORKER = 1 ] && echo good > b.txt || echo bad > b.txt; echo Done.'],
  });
  const { engine, history } = testEngine({ folder: lab.root, agents: new Map([['coder', agent]]) });
  const workflow: WorkflowModel = {
    name: 'flow',
    input: { parse: () => ({}), fields: [] },
    onFailure: 'fail-fast',
    steps: [
      step('fix', agentBody(), {
        fanOut: {
          kind: 'concurrency',
          items: () => [{}, {}, {}],
          onFailure: 'fail-fast',
          select: { gates: [command('grep -q good b.txt')] },
        },
      }),
      step(
        'land',
        { kind: 'land', onto: () => 'main', from: 'fix' },
        { needs: [{ id: 'fix', tolerant: false }] },
      ),
    ],
  };
  const result = await engine.start({ workflow, input: {} });
  expect(result).toMatchObject({ status: 'completed' });
  expect(summary(await history(result.runId))).toContain('selection.made fix');
  expect(lab.git('show', 'main:b.txt')).toBe('good');
});

/** Starts a run with one agent that prints `here` and runs until it is stopped. */
function workingRun(given: Parameters<typeof testEngine>[0] = {}) {
  const lab = new Lab();
  lab.write('.git/info/exclude', '.reprise\n');
  const agent = agentOf({ command: ['sh', '-c', 'echo half > half.txt; echo here; sleep 1000'] });
  const here = deferred();
  const { engine, history, store } = testEngine({
    folder: lab.root,
    agents: new Map([['coder', agent]]),
    observe: each => void (each.kind === 'agent' && each.event.type === 'text' && here.resolve()),
    ...given,
  });
  const workflow: WorkflowModel = {
    name: 'flow',
    input: { parse: () => ({}), fields: [] },
    onFailure: 'fail-fast',
    steps: [step('fix', agentBody())],
  };
  return { lab, engine, history, store, workflow, here: here.promise };
}

test('an interrupted run keeps its work and leaves no process running', async () => {
  const { lab, engine, history, workflow, here, store } = workingRun();
  const interrupt = new AbortController();
  const running = engine.start({ workflow, input: {}, interrupt: interrupt.signal });
  await here;
  interrupt.abort('enough');
  const { runId, status } = await running;
  expect(status).toBe('cancelled');
  expect(summary(await history(runId)).slice(-4)).toEqual([
    'session.ended fix',
    'workspace.saved fix',
    'step.cancelled fix',
    'run.cancelled',
  ]);
  expect(lab.git('show', `reprise/flow/${runId}/fix:half.txt`)).toBe('half');
  expect(markedWith({ REPRISE_RUN: runId })).toEqual([]);
  expect(await store.processes(runId)).toEqual([]);
});

test('a process that lost its run stops instead of waiting forever', async () => {
  const { engine, workflow, here, store } = workingRun({ settings: { leaseMs: 300 } });
  const running = engine.start({ workflow, input: {} });
  await here;
  const [run] = await store.list();
  if (!run?.owner) throw new Error('the run has no owner');
  const taken = await store.acquire({
    runId: run.runId,
    owner: { ...run.owner, incarnation: 'other' },
    now: '2026-01-01T00:00:00.000Z',
    expiresAt: '2999-01-01T00:00:00.000Z',
    provablyDead: run.owner.incarnation,
  });
  expect(taken.kind).toBe('acquired');
  await expect(running).rejects.toMatchObject({ code: 'FENCED' });
  expect(markedWith({ REPRISE_RUN: run.runId })).toEqual([]);
});
