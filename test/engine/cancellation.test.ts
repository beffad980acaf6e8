import { existsSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { markedWith } from '../../src/process/tree.ts';
import { shell, step, workflow } from '../../src/workflow/builder/index.ts';
import { deferred, temporaryFolder, testEngine } from '../support/engine.ts';
import { at, endsOf, eventsOf, eventWatch, timedEngine } from './support.ts';

/** A script whose children leave its process group and ignore SIGHUP. */
const tree = `
setsid bash -c 'trap "" HUP; echo ready > "$READY"; sleep 60' &
sleep 60 &
wait
`;

async function untilExists(file: string): Promise<void> {
  while (!existsSync(file)) await new Promise(resolve => setImmediate(resolve));
}

describe('the cancellation of a run', () => {
  it('stops the whole process tree after an interrupt before the run ends as cancelled', async () => {
    const ready = join(temporaryFolder(), 'ready');
    const long = shell('long', { run: tree, env: { READY: ready } });
    const next = step('next', { after: { long }, run: () => 'never' });
    const interrupt = new AbortController();
    const { engine, events, store } = testEngine();
    const running = engine.start({
      workflow: workflow('w', { steps: [long, next] }).model,
      interrupt: interrupt.signal,
    });
    await untilExists(ready);
    const runId = events[0]?.runId ?? '';
    expect(markedWith({ REPRISE_RUN: runId }).length).toBeGreaterThanOrEqual(3);
    expect(await store.processes(runId)).toHaveLength(1);
    interrupt.abort('SIGINT');
    expect(await running).toEqual({ runId, status: 'cancelled', reason: 'SIGINT' });
    expect(markedWith({ REPRISE_RUN: runId })).toEqual([]);
    expect(await store.processes(runId)).toEqual([]);
    expect(endsOf(events)).toEqual({ long: 'cancelled', next: 'skipped' });
  });

  it('runs nothing if the interrupt came before the run was started, resumed or forked', async () => {
    const ran: string[] = [];
    const fails = step('fails', {
      run: (): string => {
        ran.push('fails');
        throw new Error('broken');
      },
    });
    const other = step('other', { run: () => ran.push('other') });
    const { model } = workflow('w', { steps: [other, fails], onFailure: 'continue' });
    const { engine, history } = testEngine();
    const interrupt = AbortSignal.abort('SIGINT');
    const started = await engine.start({ workflow: model, interrupt });
    expect(started).toMatchObject({ status: 'cancelled', reason: 'SIGINT' });
    expect(endsOf(await history(started.runId))).toEqual({ other: 'skipped', fails: 'skipped' });
    expect(ran).toEqual([]);

    const { runId } = await engine.start({ workflow: model });
    ran.length = 0;
    const resumed = await engine.resume({ workflow: model, runId, interrupt });
    const forked = await engine.fork({ workflow: model, runId, from: 'other', interrupt });
    expect([resumed.status, forked.status]).toEqual(['cancelled', 'cancelled']);
    expect(ran).toEqual([]);
  });

  it('stops the whole process tree after a message of another process', async () => {
    const ready = join(temporaryFolder(), 'ready');
    const long = shell('long', { run: tree, env: { READY: ready } });
    const { engine, events, store } = testEngine();
    const running = engine.start({ workflow: workflow('w', { steps: [long] }).model });
    await untilExists(ready);
    const runId = events[0]?.runId ?? '';
    await store.post(runId, { kind: 'cancel', reason: 'enough', by: 'ana' }, at);
    expect(await running).toMatchObject({ status: 'cancelled', reason: 'enough' });
    expect(markedWith({ REPRISE_RUN: runId })).toEqual([]);
    expect(eventsOf(events, 'cancel.requested')[0]?.data).toEqual({ reason: 'enough', by: 'ana' });
    expect(await store.inbox(runId)).toEqual([]);
  });

  it('lets a script clean up and kills one that ignores SIGTERM', async () => {
    const folder = temporaryFolder();
    const run = `trap 'echo tidied > "$FOLDER/tidied"; exit 0' TERM; echo ready > "$FOLDER/polite"; while :; do sleep 0.01; done`;
    const polite = shell('polite', { run, env: { FOLDER: folder } });
    const deaf = shell('deaf', {
      run: `trap '' TERM; echo ready > "$FOLDER/deaf"; while :; do sleep 0.01; done`,
      env: { FOLDER: folder },
    });
    const interrupt = new AbortController();
    const { engine, events } = testEngine({ settings: { graceMs: 300 } });
    const running = engine.start({
      workflow: workflow('w', { steps: [polite, deaf] }).model,
      interrupt: interrupt.signal,
    });
    await Promise.all([untilExists(join(folder, 'polite')), untilExists(join(folder, 'deaf'))]);
    interrupt.abort('stop');
    expect(await running).toMatchObject({ status: 'cancelled' });
    expect(readFileSync(join(folder, 'tidied'), 'utf8')).toBe('tidied\n');
    expect(endsOf(events)).toEqual({ polite: 'cancelled', deaf: 'cancelled' });
  });

  it('reaches running and waiting steps inside child workflows', async () => {
    const inner = step('inner', {
      run: (_, ctx) =>
        new Promise<string>((_, reject) =>
          ctx.signal.addEventListener('abort', () => reject(ctx.signal.reason)),
        ),
    });
    const waiting = step('waiting', { run: (_, ctx) => ctx.waitForSignal('never') });
    const outer = step('outer', { uses: workflow('child', { steps: [inner, waiting] }) });
    const after = step('after', { after: { outer }, run: () => 'never' });
    const watch = eventWatch();
    const interrupt = new AbortController();
    const { engine, events } = testEngine({ observe: watch.observe });
    const running = engine.start({
      workflow: workflow('w', { steps: [outer, after] }).model,
      interrupt: interrupt.signal,
    });
    await watch.seenType('step.suspended', 'outer/waiting');
    interrupt.abort('SIGTERM');
    expect(await running).toMatchObject({ status: 'cancelled', reason: 'SIGTERM' });
    expect(endsOf(events)).toEqual({
      'outer/inner': 'cancelled',
      'outer/waiting': 'cancelled',
      outer: 'cancelled',
      after: 'skipped',
    });
  });

  it('cancels a function that returns a result after the abort', async () => {
    const late = step('late', {
      run: (_, ctx) =>
        new Promise<string>(resolve => ctx.signal.addEventListener('abort', () => resolve('too late'))),
    });
    const watch = eventWatch();
    const interrupt = new AbortController();
    const { engine, events } = testEngine({ observe: watch.observe });
    const running = engine.start({
      workflow: workflow('w', { steps: [late] }).model,
      interrupt: interrupt.signal,
    });
    await watch.seenType('step.started', 'late');
    interrupt.abort('stop');
    expect(await running).toMatchObject({ status: 'cancelled' });
    expect(endsOf(events)).toEqual({ late: 'cancelled' });
  });

  it('does not break on waits that a function never awaited', async () => {
    const careless = step('careless', {
      run: async (_, ctx) => {
        void ctx.sleep('1h');
        void ctx.waitForSignal('never');
        await ctx.waitForSignal('neither');
      },
    });
    const watch = eventWatch();
    const interrupt = new AbortController();
    const { engine } = testEngine({ observe: watch.observe });
    const running = engine.start({
      workflow: workflow('w', { steps: [careless] }).model,
      interrupt: interrupt.signal,
    });
    await watch.seenType('step.suspended', 'careless');
    interrupt.abort('stop');
    expect(await running).toMatchObject({ status: 'cancelled' });
  });

  it('can be undone by a resume, which runs cancelled steps and keeps finished ones', async () => {
    const hold = deferred();
    const runs: string[] = [];
    const quick = step('quick', { run: () => void runs.push('quick') });
    const slow = step('slow', {
      after: { quick },
      run: async () => {
        runs.push('slow');
        await hold.promise;
      },
    });
    const after = step('after', { after: { slow }, run: () => void runs.push('after') });
    const { model } = workflow('w', { steps: [quick, slow, after] });
    const watch = eventWatch();
    const interrupt = new AbortController();
    const { engine } = testEngine({ observe: watch.observe, settings: { graceMs: 0 } });
    const running = engine.start({ workflow: model, interrupt: interrupt.signal });
    await watch.seenType('step.started', 'slow');
    interrupt.abort('stop');
    const { runId, status } = await running;
    expect(status).toBe('cancelled');
    hold.resolve();
    expect(await engine.resume({ workflow: model, runId })).toMatchObject({ status: 'completed' });
    expect(runs).toEqual(['quick', 'slow', 'slow', 'after']);
  });
});

describe('a time budget', () => {
  const patient = step('patient', {
    run: async (_, ctx) => {
      await ctx.sleep('1h');
      return 'done';
    },
  });
  const { model } = workflow('w', { steps: [patient], budget: { minutes: 10 } });

  it('suspends the run with the budget in the message', async () => {
    const { engine, events, clock } = timedEngine();
    const result = await clock.until(engine.start({ workflow: model }));
    expect(result).toMatchObject({
      status: 'suspended',
      by: 'budget',
      error: { code: 'BUDGET_EXCEEDED', message: 'the run took longer than its budget of 10m 00s' },
    });
    expect(endsOf(events)).toEqual({});
    const [start, end] = [events[0], events.at(-1)].map(event => Date.parse(event?.at ?? ''));
    expect((end ?? 0) - (start ?? 0)).toBe(600_000);
  });

  it('includes the time before a resume and can be raised', async () => {
    const { engine, events, clock } = timedEngine();
    const first = await clock.until(engine.start({ workflow: model }));
    const second = await clock.until(
      engine.resume({ workflow: model, runId: first.runId, budgetMs: 12 * 60_000 }),
    );
    expect(second).toMatchObject({ status: 'suspended', error: { code: 'BUDGET_EXCEEDED' } });
    const lives = events
      .filter(({ type }) => type === 'run.resumed' || type === 'run.suspended')
      .map(event => Date.parse(event.at));
    expect((lives[2] ?? 0) - (lives[1] ?? 0)).toBe(120_000);
    const third = await clock.until(
      engine.resume({ workflow: model, runId: first.runId, budgetMs: 24 * 3_600_000 }),
    );
    expect(third).toMatchObject({ status: 'completed', output: { patient: 'done' } });
  });
});
