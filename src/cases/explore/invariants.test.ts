import { describe, expect, it } from 'vitest';
import type { EffectOutcome } from '../../effects/effect.ts';
import { createInvariantMonitor } from './invariants.ts';

const lease = (epoch: number) => ({ epoch, incarnation: 'x' });

function openMonitor(verifies = false) {
  const monitor = createInvariantMonitor({ verifies });
  let n = 0;
  const note = (lane: string, name: string, args: unknown, value: unknown = undefined) => {
    const effect = { name, span: 'short', perform: () => undefined } as const;
    const outcome: EffectOutcome = { kind: 'ok', value };
    monitor.tracer.settled(
      { lane: { name: lane }, effect, args, keys: {} },
      { n, i: n, phase: 'short' },
      outcome,
    );
    n++;
  };
  const claims = (lane: string, runId: string, token: number) =>
    note(lane, 'claim.take', { task: 't', runId }, { kind: 'claimed', claim: { token } });
  const moves = (lane: string, runId: string, { epoch = 1, token = 1, commit = 'c' } = {}) =>
    note(
      lane,
      'land.move',
      {
        key: runId,
        runId,
        lease: lease(epoch),
        onto: 'main',
        ready: { commit },
        claim: { task: 't', token },
      },
      { kind: 'moved' },
    );
  return { monitor, note, claims, moves };
}

describe('the invariant monitor', () => {
  it('accepts two workers that work one after the other', () => {
    const { monitor, note, claims, moves } = openMonitor();
    for (const [lane, run] of [
      ['a/worker', 'r1'],
      ['b/worker', 'r2'],
    ] as const) {
      note(lane, 'store.create', { runId: run }, lease(1));
      note(lane, 'agent.take-slot', { key: run, agent: 'dispatch', places: 1 });
      claims(lane, run, run === 'r1' ? 1 : 2);
      note(lane, 'agent.release-slot', { key: run, agent: 'dispatch' });
      note(lane, 'land.lock', { key: run });
      moves(lane, run, { token: run === 'r1' ? 1 : 2 });
      note(lane, 'land.unlock', run);
      note(lane, 'claim.settle', { task: 't' }, true);
      note(lane, 'store.release', { runId: run, lease: lease(1) });
    }
    expect(monitor.violation).toBeUndefined();
  });

  it.each([
    [
      'claimed twice',
      ({ note, claims }) => {
        note('a/w', 'store.create', { runId: 'r1' }, lease(1));
        claims('a/w', 'r1', 1);
        claims('b/w', 'r2', 2);
      },
    ],
    [
      'places of dispatch held twice',
      ({ note }) => {
        note('a/w', 'agent.take-slot', { key: 'r1', agent: 'dispatch', places: 1 });
        note('b/w', 'agent.take-slot', { key: 'r2', agent: 'dispatch', places: 1 });
      },
    ],
    [
      'landed without the lock',
      ({ note, claims, moves }) => {
        note('a/w', 'store.create', { runId: 'r1' }, lease(1));
        claims('a/w', 'r1', 1);
        moves('a/w', 'r1');
      },
    ],
    [
      'taken from the living',
      ({ note }) => {
        const [soon, later] = ['2026-01-01T00:00:30.000Z', '2026-01-01T00:01:00.000Z'];
        note('a/w', 'store.create', { runId: 'r1', expiresAt: soon }, lease(1));
        note('b/w', 'store.acquire', { runId: 'r1', now: later }, { kind: 'acquired', lease: lease(2) });
      },
    ],
    [
      'landed by a former owner',
      ({ monitor, note, claims, moves }) => {
        note('a/w', 'store.create', { runId: 'r1' }, lease(1));
        claims('a/w', 'r1', 1);
        monitor.crashed('a');
        note('b/w', 'store.acquire', { runId: 'r1' }, { kind: 'acquired', lease: lease(2) });
        note('a/w', 'land.lock', { key: 'r1' });
        moves('a/w', 'r1');
      },
    ],
    [
      'landed without the claim',
      ({ note, claims, moves }) => {
        note('a/w', 'store.create', { runId: 'r1' }, lease(1));
        claims('a/w', 'r1', 1);
        note('b', 'command.tasks', ['tasks', 'release', 't'], { code: 0 });
        note('a/w', 'land.lock', { key: 'r1' });
        moves('a/w', 'r1');
      },
    ],
    [
      'landed without the claim',
      ({ note, claims, moves }) => {
        note('a/w', 'store.create', { runId: 'r1' }, lease(1));
        claims('a/w', 'r1', 1);
        note('a/w', 'claim.settle', { task: 't' }, true);
        note('a/w', 'land.lock', { key: 'r1' });
        moves('a/w', 'r1');
      },
    ],
  ] as const satisfies readonly (readonly [string, (of: ReturnType<typeof openMonitor>) => void])[])(
    'reports a violation: %s',
    (what, happens) => {
      const opened = openMonitor();
      happens(opened);
      expect(opened.monitor.violation?.what).toBe(what);
    },
  );

  it('reports a landing of an unverified commit, if the case verifies landings', () => {
    const { monitor, note, claims, moves } = openMonitor(true);
    note('a/w', 'store.create', { runId: 'r1' }, lease(1));
    claims('a/w', 'r1', 1);
    note('a/w', 'land.lock', { key: 'r1' });
    note('a/w', 'land.verify', { commit: 'c' }, { passed: true });
    moves('a/w', 'r1');
    expect(monitor.violation).toBeUndefined();
    moves('a/w', 'r1', { commit: 'd' });
    expect(monitor.violation?.what).toBe('landed unverified');
  });

  it('accepts the takeover of a run whose owner has died', () => {
    const { monitor, note } = openMonitor();
    note('a/w', 'store.create', { runId: 'r1' }, lease(1));
    monitor.crashed('a');
    note('b/w', 'store.acquire', { runId: 'r1' }, { kind: 'acquired', lease: lease(2) });
    expect(monitor.violation).toBeUndefined();
  });

  it('accepts a claim of a task whose run has ended', () => {
    const { monitor, note, claims } = openMonitor();
    note('a/w', 'store.create', { runId: 'r1' }, lease(1));
    claims('a/w', 'r1', 1);
    note('a/w', 'store.append', { runId: 'r1', events: [{ type: 'run.failed' }] });
    claims('b/w', 'r2', 2);
    expect(monitor.violation).toBeUndefined();
  });

  it('forgets the locks, runs and claims of a killed process', () => {
    const { monitor, note, claims } = openMonitor();
    note('a/w', 'store.create', { runId: 'r1' }, lease(1));
    claims('a/w', 'r1', 1);
    note('a/w', 'land.lock', { key: 'r1' });
    monitor.crashed('a');
    note('b/w', 'land.lock', { key: 'r2' });
    claims('b/w', 'r2', 2);
    expect(monitor.violation).toBeUndefined();
  });
});
