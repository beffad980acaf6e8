import { describe, expect, it } from 'vitest';
import { digestsOf } from '../../src/engine/history/digest.ts';
import { approve, maybe, step, workflow } from '../../src/workflow/builder/index.ts';
import type { WorkflowModel } from '../../src/workflow/model.ts';
import { testEngine } from '../support/engine.ts';
import { at, countingStore, endsOf, eventsOf } from './support.ts';
import { diamond } from './versions.ts';

describe('a changed definition', () => {
  it('stops a resume before anything is written or run', async () => {
    const runs: string[] = [];
    const { engine, store } = testEngine();
    const { runId } = await engine.start({ workflow: diamond(runs) });
    runs.length = 0;
    const counted = countingStore(store);
    const second = testEngine({ store: counted.store });
    await expect(second.engine.resume({ workflow: diamond(runs, { b: 2 }), runId })).rejects.toMatchObject({
      code: 'DEFINITION_CHANGED',
      message: expect.stringContaining('b: changed'),
      hint: expect.stringContaining('--rerun-changed'),
    });
    expect(counted.writes).toEqual([]);
    expect(runs).toEqual([]);
    expect((await store.list())[0]).toMatchObject({ status: 'completed', owner: null });
  });

  it('leads to a rerun of exactly the changed steps and their dependants on request', async () => {
    const runs: string[] = [];
    const { engine } = testEngine();
    const { runId } = await engine.start({ workflow: diamond(runs) });
    runs.length = 0;
    const changed = diamond(runs, { b: 2 });
    const result = await engine.resume({ workflow: changed, runId, rerunChanged: true });
    expect(result).toMatchObject({ status: 'completed', output: { d: 'd' } });
    expect(runs).toEqual(['b', 'd']);
    await expect(engine.replay({ workflow: changed, runId })).resolves.toMatchObject({ ended: true });
    await expect(engine.replay({ workflow: diamond([]), runId })).rejects.toMatchObject({
      code: 'HISTORY_DIVERGED',
    });
    const fewer = { ...changed, steps: changed.steps.filter(({ id }) => id !== 'd'), output: () => null };
    await expect(engine.replay({ workflow: fewer, runId })).rejects.toMatchObject({
      code: 'HISTORY_DIVERGED',
      message: `run ${runId} does not match the definition: d no longer exists`,
    });
  });

  it('does not count if the changed step never ran', async () => {
    const runs: string[] = [];
    const gate = approve('gate', { message: 'ok?' });
    const build = (text: string) =>
      workflow('w', {
        steps: [gate, step('late', { after: { gate }, run: text === 'old' ? () => 'old' : () => 'new' })],
      }).model;
    const { engine, store } = testEngine();
    const { runId } = await engine.start({ workflow: build('old') });
    await store.post(runId, { kind: 'approval', step: 'gate', choice: 'approve' }, at);
    expect(await engine.resume({ workflow: build('new'), runId })).toMatchObject({ output: { late: 'new' } });
    expect(runs).toEqual([]);
  });

  it('may drop steps and add new ones', async () => {
    const a = step('a', { run: () => 'a' });
    const dropped = step('dropped', { after: { a }, run: () => 'dropped' });
    const added = step('added', { after: { a }, run: ({ a }) => `${a} added` });
    const { engine, history } = testEngine();
    const { runId } = await engine.start({ workflow: workflow('w', { steps: [a, dropped] }).model });
    const { model } = workflow('w', { steps: [a, added] });
    await expect(engine.resume({ workflow: model, runId })).rejects.toMatchObject({
      message: expect.stringContaining('dropped: removed'),
    });
    const result = await engine.resume({ workflow: model, runId, rerunChanged: true });
    expect(result).toMatchObject({ status: 'completed', output: { added: 'a added' } });
    expect(eventsOf(await history(runId), 'run.resumed')[0]?.data).toEqual({
      invalidated: ['dropped'],
      steps: ['a', 'added'],
    });
  });

  it('keeps earlier steps inside a child workflow and reruns later steps outside', async () => {
    const runs: string[] = [];
    const build = (version: number) => {
      const note = (id: string) => () => {
        runs.push(id);
        return id;
      };
      const first = step('first', { run: note('first') });
      const second = step('second', { after: { first }, run: note('second') });
      const beside = step('beside', { run: note('beside') });
      const child = workflow('child', { steps: [first, second, beside] });
      const before = step('before', { run: note('before') });
      const outer = step('outer', { after: { before }, uses: child });
      const after = step('after', { after: { outer }, run: note('after') });
      const { model } = workflow('w', { steps: [before, outer, after] });
      return withFingerprints(model, path => (path === 'outer/second' ? `${path}-${version}` : path));
    };
    const { engine, history } = testEngine();
    const { runId } = await engine.start({ workflow: build(1) });
    runs.length = 0;
    expect(await engine.resume({ workflow: build(2), runId, rerunChanged: true })).toMatchObject({
      status: 'completed',
      output: { after: 'after' },
    });
    expect(runs).toEqual(['second', 'after']);
    expect(endsOf(await history(runId))).toMatchObject({ outer: 'completed', 'outer/second': 'completed' });
  });
});

function withFingerprints(model: WorkflowModel, name: (path: string) => string, prefix = ''): WorkflowModel {
  const steps = model.steps.map(step => {
    const { body } = step;
    const path = `${prefix}${step.id}`;
    const inner =
      body.kind === 'uses' ? { ...body, workflow: withFingerprints(body.workflow, name, `${path}/`) } : body;
    return { ...step, fingerprint: name(path), body: inner };
  });
  return { ...model, steps };
}

describe('a resume', () => {
  it('runs and writes nothing for a completed run and returns its result', async () => {
    const runs: string[] = [];
    const model = diamond(runs);
    const { engine, store } = testEngine();
    const first = await engine.start({ workflow: model });
    runs.length = 0;
    const counted = countingStore(store);
    const second = testEngine({ store: counted.store });
    expect(await second.engine.resume({ workflow: model, runId: first.runId })).toEqual(first);
    expect(counted.writes).toEqual([]);
    expect(runs).toEqual([]);
    expect((await store.list())[0]?.status).toBe('completed');
  });

  it('keeps the finished steps of a failed run and leads to the digest of a run that never failed', async () => {
    let broken = true;
    const runs: string[] = [];
    const build = () => {
      const note = (id: string) => () => {
        runs.push(id);
        return id;
      };
      const good = step('good', { run: note('good') });
      const optional = step('optional', {
        optional: true,
        run: (): string => {
          runs.push('optional');
          throw new Error('always');
        },
      });
      const innerGood = step('good', { run: note('inner good') });
      const innerBad = step('bad', {
        after: { good: innerGood },
        run: () => {
          runs.push('inner bad');
          if (broken) throw new Error('no');
          return 'fine';
        },
      });
      const outer = step('outer', {
        after: { good },
        uses: workflow('child', { steps: [innerGood, innerBad] }),
      });
      const after = step('after', { after: { outer }, run: note('after') });
      const tidy = step('tidy', {
        after: { outer: maybe(outer), optional: maybe(optional) },
        run: note('tidy'),
      });
      return workflow('w', { steps: [good, optional, outer, after, tidy], onFailure: 'continue' }).model;
    };
    const model = build();
    const { engine, history } = testEngine();
    const first = await engine.start({ workflow: model });
    expect(first).toMatchObject({ status: 'failed', step: 'outer/bad' });
    expect(runs.filter(id => id === 'tidy')).toHaveLength(1);
    runs.length = 0;
    broken = false;
    const second = await engine.resume({ workflow: model, runId: first.runId });
    expect(second).toMatchObject({ status: 'completed' });
    expect(runs.sort()).toEqual(['after', 'inner bad', 'tidy']);
    const clean = await engine.start({ workflow: model });
    const digest = async (runId: string) => digestsOf(await history(runId)).outcome;
    expect(await digest(first.runId)).toBe(await digest(clean.runId));
  });
});
