import { describe, expect, it, vi } from 'vitest';
import { testEngine } from '../../../test/support/engine.ts';
import type { HistoryEvent, NewEvent } from '../../core/events.ts';
import type { Observation } from '../../engine/environment.ts';
import { approve, shell, step, workflow } from '../../workflow/builder/index.ts';
import {
  approvalRequested,
  cancelled,
  completed,
  exitedWith,
  failed,
  historyOf,
  noon,
  retrying,
  runCompleted,
  runFailed,
  runStarted,
  skipped,
  started,
  suspended,
} from '../test-support.ts';
import { createPlainReporter, type PlainReporterOptions } from './plain.ts';

vi.stubEnv('TZ', 'UTC');

const build = shell('build', { run: 'make' });
const test = shell('test', { after: { build }, run: 'make test', retry: 3 });
const lint = shell('lint', { run: 'make lint', optional: true });
const land = approve('land', { after: { test }, message: 'Land it?' });
const order = workflow('order', { steps: [build, test, lint, land] }).model;
const paths = ['build', 'test', 'lint', 'land'];

function logOf(observations: readonly Observation[], options: Partial<PlainReporterOptions> = {}): string {
  let text = '';
  const write = (more: string) => {
    text += more;
  };
  const reporter = createPlainReporter({
    write,
    color: false,
    workflow: order,
    now: () => noon + 1500,
    ...options,
  });
  for (const observation of observations) reporter.observe(observation);
  return text;
}

const events = (entries: readonly (readonly [number, NewEvent])[]): Observation => ({
  kind: 'events',
  events: historyOf(entries),
});
const output = (path: string, line: string): Observation => ({
  kind: 'output',
  step: path,
  stream: 'stdout',
  line,
});

describe('the plain log', () => {
  it('has a line for each thing that happened', () => {
    const log = logOf([
      events([
        [0, runStarted('order', paths)],
        [0, started('build')],
        [0, started('lint')],
        [300, failed('lint')],
        [1234, completed('build')],
        [1234, started('test')],
        [2000, retrying('test', 2000)],
        [4000, started('test', 2)],
        [4500, completed('test', 2)],
        [4500, started('land')],
        [4500, approvalRequested('land', 'Land it?')],
        [4500, suspended('land')],
        [
          64_500,
          {
            type: 'approval.given',
            step: 'land',
            attempt: 1,
            data: { choice: 'approve', by: 'ana', comment: 'nice' },
          },
        ],
        [64_500, completed('land')],
        [64_500, runCompleted],
      ]),
    ]);
    expect(log).toMatchInlineSnapshot(`
      "12:00:00 order  run k7x2 started: 4 steps
      12:00:00 build  started
      12:00:00 lint   started
      12:00:00 lint   failed (optional): exited with code 1
      12:00:01 build  ok 1.2s
      12:00:01 test   started
      12:00:02 test   failed (attempt 1 of 3), again in 2.0s: exited with code 1
      12:00:04 test   started (attempt 2 of 3)
      12:00:04 test   ok 3.2s (attempt 2 of 3)
      12:00:04 land   waits for approval: Land it? (reprise approve k7x2 land)
      12:01:04 land   answered: approve by ana: nice
      12:01:04 land   ok
      12:01:04 order  completed in 1m 04s
      "
    `);
  });

  it('says why steps did not run, and what a run is stopped for', () => {
    const log = logOf([
      events([
        [0, runStarted('order', paths)],
        [0, started('build')],
        [0, started('lint')],
        [0, { type: 'cancel.requested', data: { reason: 'SIGINT', by: 'ana' } }],
        [100, cancelled('lint', 'SIGINT')],
        [100, failed('build', { code: 'TIMEOUT', message: 'the attempt took longer than 100ms' })],
        [100, skipped('test', 'build')],
        [100, skipped('land', 'test')],
        [100, { type: 'run.cancelled', data: { reason: 'SIGINT' } }],
      ]),
    ]);
    expect(log).toMatchInlineSnapshot(`
      "12:00:00 order  run k7x2 started: 4 steps
      12:00:00 build  started
      12:00:00 lint   started
      12:00:00 order  is being cancelled by ana: SIGINT
      12:00:00 lint   cancelled: SIGINT
      12:00:00 build  failed: the attempt took longer than 100ms
      12:00:00 test   skipped: build failed
      12:00:00 land   skipped: test was skipped
      12:00:00 order  cancelled after 100ms: SIGINT
      "
    `);
  });

  it('shows the last lines of output with a failure, from the message or from what was printed', () => {
    const log = logOf([
      events([
        [0, runStarted('order', paths)],
        [0, started('build')],
        [0, started('lint')],
      ]),
      output('build', 'compiling'),
      output('lint', 'checking a.c'),
      events([
        [1500, failed('lint', { code: 'TIMEOUT', message: 'the attempt took longer than 1s' })],
        [1500, failed('build', exitedWith(2, 'compiling\nerror: no such file'))],
        [1500, runFailed('build', exitedWith(2, 'compiling\nerror: no such file'))],
      ]),
    ]);
    expect(log).toMatchInlineSnapshot(`
      "12:00:00 order  run k7x2 started: 4 steps
      12:00:00 build  started
      12:00:00 lint   started
      12:00:01 lint   failed (optional): the attempt took longer than 1s
      12:00:01 lint   | checking a.c
      12:00:01 build  failed: exited with code 2
      12:00:01 build  | compiling
      12:00:01 build  | error: no such file
      12:00:01 order  failed after 1.5s: build: exited with code 2
      "
    `);
  });

  it('shows all output when asked to, and then does not repeat it', () => {
    const log = logOf(
      [
        events([
          [0, runStarted('order', paths)],
          [0, started('build')],
        ]),
        output('build', 'compiling'),
        events([[1500, failed('build', exitedWith(2, 'compiling'))]]),
      ],
      { verbose: true },
    );
    expect(log).toMatchInlineSnapshot(`
      "12:00:00 order  run k7x2 started: 4 steps
      12:00:00 build  started
      12:00:01 build  | compiling
      12:00:01 build  failed: exited with code 2
      "
    `);
  });

  it('tells of a resume what runs again, and knows what happened before without showing it', () => {
    const before: readonly (readonly [number, NewEvent])[] = [
      [0, runStarted('order', paths)],
      [0, started('build')],
      [10, completed('build')],
      [10, started('test')],
    ];
    const all = historyOf([
      ...before,
      [90_000, { type: 'run.resumed', data: {} }],
      [90_000, { type: 'step.interrupted', step: 'test', attempt: 1, data: {} }],
      [90_000, started('test')],
      [90_100, skipped('lint')],
      [90_100, { type: 'signal.received', data: { name: 'go', payload: null, by: 'ci' } }],
      [90_100, completed('test')],
    ]);
    const log = logOf([{ kind: 'events', events: all.slice(4) }], { history: all.slice(0, 4) });
    expect(log).toMatchInlineSnapshot(`
      "12:01:30 order  run k7x2 resumed
      12:01:30 test   was interrupted and runs again
      12:01:30 test   started
      12:01:30 lint   skipped: its condition is false
      12:01:30 order  received signal go by ci
      12:01:30 test   ok 100ms
      "
    `);
  });

  it('passes on what functions log and what the engine has to say', () => {
    const log = logOf([
      { kind: 'log', step: 'build', message: 'fetched', fields: { pages: 3 } },
      { kind: 'notice', message: 'ended 2 processes that the last owner had left running' },
    ]);
    expect(log).toMatchInlineSnapshot(`
      "12:00:01 build  log: fetched pages=3
      12:00:01 order  note: ended 2 processes that the last owner had left running
      "
    `);
  });

  it('lets no control character through, whoever wrote it', () => {
    const evil = '\u001B[2Jgone\u0007\r\u001B]0;x\u0007';
    const log = logOf(
      [
        events([
          [0, runStarted('order', paths)],
          [0, failed('build', { code: 'STEP_FAILED', message: `${evil}\n${evil}` })],
          [0, cancelled('lint', evil)],
          [0, approvalRequested('land', evil)],
        ]),
        output('build', evil),
        { kind: 'log', step: 'build', message: evil, fields: { evil } },
        { kind: 'notice', message: evil },
      ],
      { verbose: true },
    );
    expect(log.replaceAll('\n', '')).not.toMatch(/\p{Cc}/u);
  });

  it('colours lines only if it may', () => {
    const observations = [
      events([
        [0, runStarted('order', paths)],
        [0, started('build')],
        [5, completed('build')],
      ]),
    ];
    const coloured = logOf(observations, { color: true });
    expect(coloured).toContain('\u001B[32mok 5ms\u001B[39m');
    expect(logOf(observations)).not.toContain('\u001B');
  });
});

it('logs a real run as it happens', async () => {
  const slow = step('slow', { run: async (_, ctx) => ctx.sleep('30ms') });
  const noisy = shell('noisy', { run: 'echo one; echo two >&2; exit 3' });
  const never = step('never', { after: { noisy }, run: () => 0 });
  const { model } = workflow('real', { steps: [slow, noisy, never], onFailure: 'continue' });
  let text = '';
  const write = (more: string) => {
    text += more;
  };
  const reporter = createPlainReporter({ write, color: false, workflow: model, now: () => noon });
  const { engine } = testEngine({ observe: observation => reporter.observe(observation) });
  const result = await engine.start({ workflow: model });
  await reporter.close(result);
  const timeless = text
    .replaceAll(result.runId, 'RUN')
    .replace(/^\d\d:\d\d:\d\d/gm, 'TIME')
    .replace(/\b(ok|after) [\d.]+m?s/g, '$1 SOON');
  expect(timeless.split('\n').toSorted().join('\n')).toMatchInlineSnapshot(`
    "
    TIME never  skipped: noisy failed
    TIME noisy  failed: exited with code 3
    TIME noisy  started
    TIME noisy  | one
    TIME noisy  | two
    TIME real   failed after SOON: noisy: exited with code 3
    TIME real   run RUN started: 3 steps
    TIME slow   goes on
    TIME slow   ok SOON
    TIME slow   sleeps 30ms
    TIME slow   started"
  `);
});

it('says what a suspended run waits for when it is left', async () => {
  let text = '';
  const write = (more: string) => {
    text += more;
  };
  const reporter = createPlainReporter({ write, color: false, workflow: order, now: () => noon });
  const waiting = [{ step: 'land', on: 'approval', message: 'Land it?', choices: ['approve'] }] as const;
  await reporter.close({ runId: 'k7x2', status: 'suspended', waiting });
  expect(text).toMatchInlineSnapshot(`
    "12:00:00 order  suspended: waits for land
    "
  `);
});

it('follows a run of 10,000 steps at a cost that grows with their number and not with its square', () => {
  const many = Array.from({ length: 10_000 }, (_, index) => `s${index}`);
  const entries: (readonly [number, NewEvent])[] = [[0, runStarted('order', many)]];
  for (const path of many) entries.push([1, started(path)], [2, completed(path)]);
  const history: readonly HistoryEvent[] = historyOf([...entries, [3, runCompleted]]);
  let lines = 0;
  const reporter = createPlainReporter({
    write: () => lines++,
    color: false,
    workflow: order,
    now: () => noon,
  });
  for (const event of history) reporter.observe({ kind: 'events', events: [event] });
  expect(lines).toBe(20_002);
});
