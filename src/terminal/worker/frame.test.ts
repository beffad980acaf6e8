import { describe, expect, it } from 'vitest';
import type { NewEvent } from '../../core/events.ts';
import { glyphsFor } from '../glyphs.ts';
import {
  completed,
  historyOf,
  noon,
  runCompleted,
  runStarted,
  sessionEnded,
  sessionStarted,
  started,
} from '../test-support.ts';
import { displayWidth, painter } from '../text.ts';
import { type WorkerFrameOptions, WorkerLane, workersFrame } from './frame.ts';

type Entries = readonly (readonly [number, NewEvent])[];

const takes = (task: string): NewEvent => ({
  type: 'transition.taken',
  step: 'dispatch',
  attempt: 1,
  data: { from: 'dispatch', to: 'coder', args: { task } },
});

const landed: NewEvent = {
  type: 'landing.ended',
  step: 'land',
  attempt: 1,
  data: {
    outcome: 'landed',
    onto: 'main',
    branch: 'b',
    commit: 'ab'.repeat(20),
    commits: 1,
    subjects: ['Fix it'],
  },
};

const dispatched = (task: string): Entries => [
  [0, runStarted('worker', ['dispatch', 'work', 'land'])],
  [0, started('dispatch')],
  [100, takes(task)],
  [100, completed('dispatch')],
  [200, started('work')],
  [300, sessionStarted('work')],
];

function laneOf(name: string, entries: Entries = []): WorkerLane {
  const lane = new WorkerLane(noon);
  lane.report({ kind: 'enlisted', name }, noon);
  lane.observe({ kind: 'events', events: historyOf(entries) });
  return lane;
}

function atWork(name: string, task: string, action = 'Edit src/a.ts'): WorkerLane {
  const lane = laneOf(name, dispatched(task));
  const event = { type: 'text', text: action } as const;
  lane.observe({ kind: 'agent', step: 'work', event });
  return lane;
}

function asleep(name: string): WorkerLane {
  const lane = laneOf(name);
  lane.report({ kind: 'sleeps', why: 'no task is ready: 1 draft' }, noon + 1000);
  return lane;
}

const options: WorkerFrameOptions = {
  branch: 'main',
  columns: 80,
  rows: 24,
  now: noon + 65_000,
  tick: 0,
  glyphs: glyphsFor(),
  paint: painter(false),
  isStopping: false,
};
const frame = (lanes: readonly WorkerLane[], given: Partial<WorkerFrameOptions> = {}): string =>
  workersFrame(lanes, { ...options, ...given }).join('\n');

describe('a worker', () => {
  it('has a task, an agent and a last action while it is working', () => {
    const lane = atWork('worker-1', 'fix-readme');
    expect(lane).toMatchObject({
      state: 'at-work',
      task: 'fix-readme',
      agent: 'coder',
      lastAction: 'Edit src/a.ts',
    });
  });

  it('adds up the cost of its tasks and counts those that landed', () => {
    const whole: Entries = [...dispatched('a'), [400, sessionEnded('work', 0.25)], [500, completed('work')]];
    const lane = laneOf('w', [
      ...whole,
      [600, started('land')],
      [700, landed],
      [700, completed('land')],
      [800, runCompleted],
    ]);
    expect(lane).toMatchObject({ state: 'idle', task: undefined, landed: 1 });
    lane.observe({ kind: 'events', events: historyOf(whole) });
    expect(lane.spent).toMatchObject({ costUsd: 0.5, priced: 2 });
  });

  it('shows a lower bound if it continues a session of a dead worker', () => {
    const lane = new WorkerLane(noon);
    lane.report({ kind: 'takes-over', runId: 'r' }, noon);
    const session = { agent: 'coder', kind: 'claude', number: 1, resumes: true };
    const begun = { type: 'session.started', step: 'work', attempt: 1, data: session } as const;
    const interrupted = { type: 'step.interrupted', step: 'work', attempt: 1, data: {} } as const;
    lane.observe({
      kind: 'events',
      events: historyOf([
        [0, { type: 'run.resumed', data: {} }],
        [0, interrupted],
      ]),
    });
    lane.observe({
      kind: 'events',
      events: historyOf([
        [50, begun],
        [100, sessionEnded('work', 0.25)],
      ]),
    });
    expect(frame([lane])).toContain('>= $0.25');
  });

  it('shows the landing after the agent has ended', () => {
    const lane = laneOf('w', [
      ...dispatched('a'),
      [400, sessionEnded('work', 0)],
      [500, completed('work')],
      [600, started('land')],
    ]);
    expect(lane.agent).toBe('land');
  });

  it('shows the run that it took over', () => {
    const lane = laneOf('w');
    lane.report({ kind: 'takes-over', runId: 'k7x2' }, noon);
    lane.observe({
      kind: 'events',
      events: historyOf([
        [0, started('work', 2)],
        [10, sessionStarted('work')],
      ]),
    });
    expect(lane).toMatchObject({ state: 'at-work', task: 'run k7x2', agent: 'coder' });
    lane.report({ kind: 'lost', runId: 'k7x2' }, noon);
    expect(lane).toMatchObject({ state: 'idle', task: undefined, agent: undefined });
  });
});

describe('a frame of workers', () => {
  const ended = laneOf('worker-4');
  ended.report({ kind: 'nothing', why: 'there are no tasks' }, noon);
  ended.report({ kind: 'ended', reason: 'idle' }, noon);
  const four = [atWork('worker-1', 'fix-readme'), asleep('ärbeiter-日本'), laneOf('worker-3'), ended];

  it('has a row for each worker', () => {
    expect(frame(four)).toMatchInlineSnapshot(`
      "4 workers on main · 1 working, 1 looking for a task, 1 sleeping, 1 done
       ⠋  worker-1       fix-readme  coder  1m 04s  Edit src/a.ts
       ◔  ärbeiter-日本                     1m 04s  sleeping: no task is ready: 1 dr…
       ⠋  worker-3                          1m 05s  looking for a task
       ✓  worker-4                                  done: there are no tasks"
    `);
  });

  it('shows that the workers have been asked to stop', () => {
    expect(frame([asleep('w')], { isStopping: true, glyphs: glyphsFor(false) })).toMatchInlineSnapshot(`
      "1 worker on main - stopping; press Ctrl-C again to stop now - 1 sleeping
       ?  w  1m 04s  sleeping: no task is ready: 1 draft"
    `);
  });

  it('fits a small terminal', () => {
    expect(frame(four, { columns: 40, rows: 5 })).toMatchInlineSnapshot(`
      "4 workers on main · 1 working, 1 looki…
       ⠋  worker-1  fix-r…  coder  1m 04s
       ⠋  worker-3                 1m 05s
       … 2 more: 1 sleeping, 1 done"
    `);
    expect(frame(four, { columns: 30, rows: 2 })).toMatchInlineSnapshot(`" ⠋  worker-1  fix-r…  coder"`);
  });

  it('shows busy workers first if not all fit', () => {
    const many = Array.from({ length: 40 }, (_, at) =>
      at % 10 === 9 ? atWork(`w${at}`, `t${at}`) : asleep(`w${at}`),
    );
    expect(frame(many, { rows: 8 })).toMatchInlineSnapshot(`
      "40 workers on main · 4 working, 36 sleeping
       ◔  w0               1m 04s  sleeping: no task is ready: 1 draft
       ⠋  w9   t9   coder  1m 04s  Edit src/a.ts
       ⠋  w19  t19  coder  1m 04s  Edit src/a.ts
       ⠋  w29  t29  coder  1m 04s  Edit src/a.ts
       ⠋  w39  t39  coder  1m 04s  Edit src/a.ts
       … 35 more: 35 sleeping"
    `);
  });

  it('is always narrower and shorter than the terminal', () => {
    for (let columns = 10; columns < 100; columns += 3)
      for (let rows = 1; rows < 10; rows++) {
        const lines = workersFrame(four, { ...options, columns, rows });
        expect(lines.length).toBeLessThan(Math.max(2, rows));
        for (const line of lines) expect(displayWidth(line)).toBeLessThan(columns);
      }
  });
});
