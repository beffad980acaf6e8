import { expect, it, vi } from 'vitest';
import type { EventType, NewEvent } from '../../core/events.ts';
import {
  approvalRequested,
  cancelled,
  completed,
  exitedWith,
  failed,
  historyOf,
  retrying,
  runFailed,
  runStarted,
  skipped,
  started,
  suspended,
} from '../test-support.ts';
import { displayWidth } from '../text.ts';
import { formatHistory } from './history.ts';

vi.stubEnv('TZ', 'UTC');

const everything: readonly (readonly [number, NewEvent])[] = [
  [
    0,
    {
      type: 'run.started',
      data: {
        format: 1,
        workflow: 'order',
        input: { n: 1 },
        steps: ['a'],
        forkedFrom: { run: 'p3', step: 'a' },
      },
    },
  ],
  [0, started('build')],
  [
    5,
    { type: 'step.started', step: 'release', attempt: 1, data: { fingerprint: 'f', input: { tag: 'v1' } } },
  ],
  [10, { type: 'timer.set', step: 'build', attempt: 1, data: { timer: 0, ms: 90_000 } }],
  [10, { type: 'step.suspended', step: 'build', attempt: 1, data: { on: 'timer', wait: 0 } }],
  [20, { type: 'timer.fired', step: 'build', attempt: 1, data: { timer: 0 } }],
  [20, { type: 'step.resumed', step: 'build', attempt: 1, data: {} }],
  [1234, { type: 'step.completed', step: 'build', attempt: 1, data: { output: { files: ['a', 'b'] } } }],
  [1234, started('test')],
  [1300, retrying('test', 2000)],
  [3300, { type: 'timer.fired', step: 'test', attempt: 1, data: { timer: 'retry' } }],
  [3300, started('test', 2)],
  [3400, { type: 'run.resumed', data: { invalidated: ['test', 'land'] } }],
  [3400, { type: 'step.interrupted', step: 'test', attempt: 2, data: {} }],
  [3400, approvalRequested('land', 'Land it?')],
  [3400, suspended('land')],
  [3400, suspended('land', 'go')],
  [
    3500,
    {
      type: 'approval.given',
      step: 'land',
      attempt: 1,
      data: { choice: 'approve', by: 'ana', comment: 'nice' },
    },
  ],
  [3500, { type: 'signal.received', data: { name: 'go', payload: { n: 7 }, by: 'ci' } }],
  [3600, failed('test', exitedWith(1, 'many\nlines'), 2)],
  [3600, { type: 'cancel.requested', data: { reason: 'enough', by: 'ana' } }],
  [3600, cancelled('release/push', 'enough')],
  [3600, skipped('land', 'test')],
  [3600, runFailed('test')],
  [3600, { type: 'run.cancelled', data: { reason: 'enough' } }],
  [3600, { type: 'run.completed', data: { output: { ok: true } } }],
];

it('shows each event on its own line', () => {
  const history = historyOf(everything);
  expect(new Set(history.map(({ type }) => type)).size).toBe(20 satisfies number);
  expect(formatHistory(history, { color: false, columns: 90 })).toMatchInlineSnapshot(`
    " 1  12:00:00.000  run.started                           order {"n":1}, forked from p3 at a
     2  12:00:00.000  step.started        build
     3  12:00:00.005  step.started        release           {"tag":"v1"}
     4  12:00:00.010  timer.set           build             sleep 0 1m 30s
     5  12:00:00.010  step.suspended      build             on timer
     6  12:00:00.020  timer.fired         build             sleep 0
     7  12:00:00.020  step.resumed        build
     8  12:00:01.234  step.completed      build             {"files":["a","b"]}
     9  12:00:01.234  step.started        test
    10  12:00:01.300  step.retrying       test              in 2.0s: exited with code 1
    11  12:00:03.300  timer.fired         test              retry
    12  12:00:03.300  step.started        test          #2
    13  12:00:03.400  run.resumed                           2 steps to run again: test, land
    14  12:00:03.400  step.interrupted    test          #2
    15  12:00:03.400  approval.requested  land              Land it? (approve, reject)
    16  12:00:03.400  step.suspended      land              on approval
    17  12:00:03.400  step.suspended      land              on signal go
    18  12:00:03.500  approval.given      land              approve by ana: nice
    19  12:00:03.500  signal.received                       go {"n":7} (by ci)
    20  12:00:03.600  step.failed         test          #2  exited with code 1
    21  12:00:03.600  cancel.requested                      enough (by ana)
    22  12:00:03.600  step.cancelled      release/push      enough
    23  12:00:03.600  step.skipped        land              dependency: test
    24  12:00:03.600  run.failed                            test: exited with code 1
    25  12:00:03.600  run.cancelled                         enough
    26  12:00:03.600  run.completed                         {"ok":true}
    "
  `);
});

it('fits narrow terminals', () => {
  const text = formatHistory(historyOf(everything.slice(7, 12)), { color: false, columns: 48 });
  expect(text).toMatchInlineSnapshot(`
    "1  12:00:01.234  step.completed  build
    2  12:00:01.234  step.started    test
    3  12:00:01.300  step.retrying   test
    4  12:00:03.300  timer.fired     test
    5  12:00:03.300  step.started    test   #2
    "
  `);
  for (const columns of [20, 40, 60, 80]) {
    const lines = formatHistory(historyOf(everything), { color: false, columns }).split('\n');
    for (const line of lines) expect(displayWidth(line)).toBeLessThanOrEqual(columns);
  }
});

it('shows the date if the events span several days', () => {
  const text = formatHistory(
    historyOf([
      [0, runStarted('order', ['a'])],
      [86_400_000, completed('a')],
    ]),
    { color: false, columns: 80 },
  );
  expect(text).toMatchInlineSnapshot(`
    "1  2026-01-15 12:00:00.000  run.started        order
    2  2026-01-16 12:00:00.000  step.completed  a
    "
  `);
});

it('removes control characters', () => {
  const evil = '\u001B[2Jgone\u0007\n';
  const types: readonly EventType[] = ['run.cancelled', 'step.cancelled'];
  const text = formatHistory(
    historyOf([
      ...types.map(type => [0, { type, step: evil, data: { reason: evil } } as NewEvent] as const),
      [0, { type: 'step.completed', step: 'a', data: { output: evil } }],
      [0, { type: 'signal.received', data: { name: evil, payload: evil } }],
    ]),
    { color: false, columns: 80 },
  );
  expect(text.split('\n')).toHaveLength(5);
  expect(text.replaceAll('\n', '')).not.toMatch(/\p{Cc}/u);
});
