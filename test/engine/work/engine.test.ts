import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { describe, expect, test } from 'vitest';
import { goOnPrompt } from '../../../src/engine/step/agent/conversation.ts';
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

const remembering = fileURLToPath(new URL('./fixtures/remembering-agent.mjs', import.meta.url));

/** A run with an agent that remembers its prompts and says `here`. */
function rememberingRun(next: string) {
  const lab = new Lab();
  const agent = agentOf({
    kind: 'claude',
    command: [process.execPath, remembering, join(lab.folder, 'memory')],
  });
  const tell = (what: string) => writeFileSync(join(lab.folder, 'next'), what);
  tell(next);
  return { ...workingRun({ agents: new Map([['coder', agent]]) }), lab, tell };
}

describe('a suspended run', () => {
  test('stops its session after a tool call and continues it', async () => {
    const { lab, tell, engine, history, store, workflow, here } = rememberingRun('tool');
    const suspend = new AbortController();
    const running = engine.start({ workflow, input: {}, suspend: suspend.signal });
    await here;
    suspend.abort('ended by SIGTERM');
    const [run] = await store.list();
    while (!summary(await history(run?.runId ?? '')).includes('run.suspended'))
      await new Promise(resolve => setImmediate(resolve));
    writeFileSync(join(lab.folder, 'boundary'), '');
    const { runId, ...result } = await running;
    expect(result).toEqual({ status: 'suspended', by: 'signal', reason: 'ended by SIGTERM' });
    expect(summary(await history(runId)).slice(-3)).toEqual([
      'run.suspended',
      'session.ended fix',
      'step.interrupted fix',
    ]);
    expect(await store.list()).toMatchObject([
      { status: 'suspended', owner: null, suspension: { by: 'signal' } },
    ]);
    tell('tell');
    expect(await engine.resume({ workflow, runId })).toMatchObject({
      status: 'completed',
      output: { fix: { text: `Fix it. | ${goOnPrompt}` } },
    });
  });

  test('stops its session at once if it has to hurry, and continues it', async () => {
    const { tell, engine, history, workflow, here } = rememberingRun('hang');
    const hurry = new AbortController();
    const running = engine.start({ workflow, input: {}, hurry: hurry.signal });
    await here;
    engine.suspend();
    hurry.abort();
    const { runId, ...result } = await running;
    expect(result).toEqual({ status: 'suspended', by: 'person', reason: 'suspended' });
    expect(markedWith({ REPRISE_RUN: runId })).toEqual([]);
    tell('tell');
    expect(await engine.resume({ workflow, runId })).toMatchObject({ status: 'completed' });
    const events = await history(runId);
    expect(
      events.flatMap(each => (each.type === 'session.started' ? [each.data.resumes ?? false] : [])),
    ).toEqual([false, true]);
  });

  test('keeps the workspace of a script as it is', async () => {
    const { lab, engine, history, workflow, here } = workingRun();
    const running = engine.start({ workflow, input: {} });
    await here;
    engine.suspend();
    const { runId } = await running;
    expect(summary(await history(runId))).not.toContain('workspace.saved fix');
    expect(lab.git('rev-parse', `reprise/flow/${runId}/fix`)).toBe(lab.git('rev-parse', 'main'));
  });

  test('is cancelled by a cancel', async () => {
    const { engine, store, workflow, here } = workingRun();
    const running = engine.start({ workflow, input: {} });
    await here;
    engine.suspend();
    const { runId } = await running;
    await store.post(runId, { kind: 'cancel', reason: 'enough' }, '2026-01-01T00:00:00.000Z');
    expect(await engine.resume({ workflow, runId })).toEqual({
      runId,
      status: 'cancelled',
      reason: 'enough',
    });
  });
});
