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
  it('has a line for each relevant event', () => {
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
      12:00:02 test   failed (attempt 1 of 3), retrying in 2.0s: exited with code 1
      12:00:04 test   started (attempt 2 of 3)
      12:00:04 test   ok 3.2s (attempt 2 of 3)
      12:00:04 land   waiting for approval: Land it? (reprise approve k7x2 land)
      12:01:04 land   answered: approve by ana: nice
      12:01:04 land   ok
      12:01:04 order  completed in 1m 04s
      "
    `);
  });

  it('shows why steps were skipped and why the run was cancelled', () => {
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
      12:00:00 order  cancel requested by ana: SIGINT
      12:00:00 lint   cancelled: SIGINT
      12:00:00 build  failed: the attempt took longer than 100ms
      12:00:00 test   skipped: build failed
      12:00:00 land   skipped: test was skipped
      12:00:00 order  cancelled after 100ms: SIGINT
      "
    `);
  });

  it('shows the last output lines of a failed step, from its message or its output', () => {
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

  it('shows all output with `verbose` and does not repeat it after a failure', () => {
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

  it('shows what a resume runs again, and applies earlier events without printing them', () => {
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
      12:01:30 test   was interrupted, running again
      12:01:30 test   started
      12:01:30 lint   skipped: its condition is false
      12:01:30 order  received signal go from ci
      12:01:30 test   ok 100ms
      "
    `);
  });

  it('shows log messages of functions and notices of the engine', () => {
    const log = logOf([
      { kind: 'log', step: 'build', message: 'fetched', fields: { pages: 3 } },
      { kind: 'notice', message: 'stopped 2 orphaned processes of the previous run' },
    ]);
    expect(log).toMatchInlineSnapshot(`
      "12:00:01 build  log: fetched pages=3
      12:00:01 order  note: stopped 2 orphaned processes of the previous run
      "
    `);
  });

  it('removes control characters from every source', () => {
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

  it('colors lines only if colors are enabled', () => {
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
    TIME slow   ok SOON
    TIME slow   resumed
    TIME slow   sleeping for 30ms
    TIME slow   started"
  `);
});

it('shows what a waiting run is waiting for when it is closed', async () => {
  let text = '';
  const write = (more: string) => {
    text += more;
  };
  const reporter = createPlainReporter({ write, color: false, workflow: order, now: () => noon });
  const waiting = [{ step: 'land', on: 'approval', message: 'Land it?', choices: ['approve'] }] as const;
  await reporter.close({ runId: 'k7x2', status: 'waiting', waiting });
  expect(text).toMatchInlineSnapshot(`
    "12:00:00 order  waiting for land
    "
  `);
});

it('follows a run of 10,000 steps in linear time', () => {
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
