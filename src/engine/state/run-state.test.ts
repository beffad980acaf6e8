import { describe, expect, it } from 'vitest';
import type { HistoryEvent, NewEvent } from '../../core/events.ts';
import { approve, step, workflow } from '../../workflow/builder/index.ts';
import { timersOf } from '../run/messages.ts';
import { buildGraph } from './graph.ts';
import { RunState } from './run-state.ts';

const a = step('a', { run: () => 1 });
const b = step('b', { after: { a }, run: () => 1 });
const gate = approve('gate', { message: 'ok?' });
const graph = buildGraph(workflow('w', { steps: [a, b, gate] }).model);

const started: NewEvent = {
  type: 'run.started',
  data: { format: 1, workflow: 'w', input: {}, steps: ['a', 'b', 'gate'] },
};
const of = (step: string) => ({ step, attempt: 1 });
const start = (path: string): NewEvent => ({ ...of(path), type: 'step.started', data: { fingerprint: 'f' } });
const complete = (path: string): NewEvent => ({ ...of(path), type: 'step.completed', data: { output: 1 } });
const end: NewEvent = { type: 'run.completed', data: { output: 1 } };

function fold(...events: readonly NewEvent[]): RunState {
  const state = new RunState(graph);
  events.forEach((event, index) => {
    state.apply({ ...event, seq: index + 1, runId: 'r', at: '2026-01-01T00:00:00.000Z' } as HistoryEvent);
  });
  return state;
}

describe('an impossible history', () => {
  it.each<[string, readonly NewEvent[], string]>([
    ['a second start of the run', [started, started], 'the run has already started'],
    ['a step before the run', [start('a')], 'the run is new'],
    ['a step before its dependencies', [started, start('b')], 'b is pending'],
    ['an end without a start', [started, complete('a')], 'a is pending'],
    ['a second end', [started, start('a'), complete('a'), complete('a')], 'a is completed'],
    ['a second start', [started, start('a'), start('a')], 'a is running'],
    [
      'a skip of a running step',
      [
        started,
        start('a'),
        { step: 'a', type: 'step.skipped', data: { fingerprint: 'f', reason: 'condition' } },
      ],
      'a is running',
    ],
    [
      'an answer to an approval that was not requested',
      [started, start('gate'), { ...of('gate'), type: 'approval.given', data: { choice: 'approve' } }],
      'gate is running',
    ],
    ['an event after the end of the run', [started, end, start('a')], 'the run is completed'],
    ['a second end of the run', [started, end, end], 'the run is completed'],
    [
      'an interruption of a step that is not running',
      [started, { ...of('a'), type: 'step.interrupted', data: {} }],
      'a is pending',
    ],
  ])('is refused: %s', (_, events, why) => {
    expect(() => fold(...events)).toThrow(
      expect.objectContaining({ code: 'HISTORY_INVALID', message: expect.stringContaining(why) }),
    );
  });

  it('is refused if an event names a step that does not exist', () => {
    expect(() => fold(started, start('nowhere'))).toThrow(
      expect.objectContaining({ code: 'HISTORY_DIVERGED' }),
    );
  });

  it('is refused if a sequence number does not increase', () => {
    const state = fold(started);
    const again = { ...start('a'), seq: 1, runId: 'r', at: '2026-01-01T00:00:00.000Z' } as HistoryEvent;
    expect(() => state.apply(again)).toThrow(expect.objectContaining({ code: 'HISTORY_INVALID' }));
  });
});

it('a wait takes no longer than its duration if the clock was set back before the resume', () => {
  const state = new RunState(graph);
  const noon = Date.parse('2026-01-01T12:00:00.000Z');
  const events: readonly (NewEvent & { readonly at: number })[] = [
    { ...started, at: noon },
    { ...start('a'), at: noon },
    {
      ...of('a'),
      type: 'step.retrying',
      data: { error: { code: 'STEP_FAILED', message: '' }, delayMs: 5_000 },
      at: noon,
    },
    { type: 'run.resumed', data: {}, at: noon - 3_600_000 },
  ];
  for (const [index, { at, ...event }] of events.entries())
    state.apply({ ...event, seq: index + 1, runId: 'r', at: new Date(at).toISOString() } as HistoryEvent);
  const node = state.at('a');
  expect(node && timersOf(node)).toEqual([{ timer: 'retry', at: noon - 3_600_000 + 5_000 }]);
});
