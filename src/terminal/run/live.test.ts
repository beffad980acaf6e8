import { describe, expect, it, vi } from 'vitest';
import { testEngine } from '../../../test/support/engine.ts';
import { terminal } from '../../../test/support/terminal.ts';
import type { NewEvent } from '../../core/events.ts';
import { shell, workflow } from '../../workflow/builder/index.ts';
import { completed, failed, historyOf, noon, runStarted, started } from '../test-support.ts';
import { createLiveReporter, type LiveReporterOptions } from './live.ts';

const steps = Array.from({ length: 200 }, (_, index) => `item-${index}`);
const wide = workflow('wide', { steps: steps.map(id => shell(id, { run: 'true', retry: 2 })) }).model;

/** 200 steps: 120 have completed, one has failed, eight are running. */
const entries: (readonly [number, NewEvent])[] = [
  [0, runStarted('wide', steps)],
  ...steps.slice(0, 129).map((step, index) => [index, started(step)] as const),
  ...steps.slice(0, 120).map((step, index) => [1000 + index, completed(step)] as const),
  [1200, failed('item-120')],
];

async function watch(
  at: { readonly columns: number; readonly rows: number },
  options: Partial<LiveReporterOptions> = {},
) {
  const screen = terminal(at.columns, at.rows);
  const clock = { now: noon + 5000 };
  let tick = () => {};
  let stopped = false;
  const reporter = await createLiveReporter({
    stdout: screen.stdout,
    workflow: wide,
    color: false,
    now: () => clock.now,
    every: (_, call) => {
      tick = call;
      return () => {
        stopped = true;
      };
    },
    ...options,
  });
  return { screen, reporter, clock, tick: () => tick(), isStopped: () => stopped };
}

describe('the live view of 200 steps', () => {
  async function pictureIn(columns: number, rows: number): Promise<string> {
    const { screen, reporter, tick } = await watch({ columns, rows });
    const line = `\u001B[31mcompiling\u001B[0m ${'x'.repeat(300)}`;
    reporter.observe({ kind: 'events', events: historyOf(entries) });
    reporter.observe({ kind: 'output', step: 'item-124', stream: 'stdout', line });
    tick();
    const text = await screen.text();
    expect(await screen.scrolledAway()).toEqual([]);
    expect(text.split('\n').length).toBeLessThan(rows);
    await reporter.close(undefined);
    return text;
  }

  it('fits an ordinary terminal', async () => {
    expect(await pictureIn(80, 24)).toMatchInlineSnapshot(`
      "wide · run k7x2 · 5.0s
       ✓ 120 done  ✗ 1 failed  ● 8 running  · 71 pending
       ✓  item-109  1.0s
       ✓  item-110  1.0s
       ✓  item-111  1.0s
       ✓  item-112  1.0s
       ✓  item-113  1.0s
       ✓  item-114  1.0s
       ✓  item-115  1.0s
       ✓  item-116  1.0s
       ✓  item-117  1.0s
       ✓  item-118  1.0s
       ✓  item-119  1.0s
       ✗  item-120  1.0s  exited with code 1
       ⠙  item-121  4.8s
       ⠙  item-122  4.8s
       ⠙  item-123  4.8s
       ⠙  item-124  4.8s  compiling xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx…
       ⠙  item-125  4.8s
       ⠙  item-126  4.8s
       ⠙  item-127  4.8s
       ⠙  item-128  4.8s
       … 71 more pending"
    `);
  });

  it('fits a small terminal', async () => {
    expect(await pictureIn(40, 10)).toMatchInlineSnapshot(`
      "wide · run k7x2 · 5.0s
       ✓120 ✗1 ●8 ·71
       ⠙  item-121  4.8s
       ⠙  item-122  4.8s
       ⠙  item-123  4.8s
       ⠙  item-124  4.8s  compiling xxxxxxxx…
       ⠙  item-125  4.8s
       ⠙  item-126  4.8s
       … 2 more active, 71 more pending"
    `);
  });

  it('fills a large terminal', async () => {
    const lines = (await pictureIn(200, 50)).split('\n');
    expect(lines).toHaveLength(49);
    expect(lines.slice(-12).join('\n')).toMatchInlineSnapshot(`
      " ✓  item-118  1.0s
       ✓  item-119  1.0s
       ✗  item-120  1.0s  exited with code 1
       ⠙  item-121  4.8s
       ⠙  item-122  4.8s
       ⠙  item-123  4.8s
       ⠙  item-124  4.8s  compiling xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx…
       ⠙  item-125  4.8s
       ⠙  item-126  4.8s
       ⠙  item-127  4.8s
       ⠙  item-128  4.8s
       … 71 more pending"
    `);
  });
});

describe('the live view', () => {
  it('redraws in place, so that only the last frame is visible', async () => {
    const { screen, reporter, clock, tick } = await watch({ columns: 80, rows: 12 });
    reporter.observe({ kind: 'events', events: historyOf(entries.slice(0, 4)) });
    for (let frame = 0; frame < 50; frame++) {
      clock.now += 100;
      tick();
    }
    expect(await screen.text()).toMatchInlineSnapshot(`
      "wide · run k7x2 · 10.0s
       ● 3 running  · 197 pending
       ⠋  item-0  10.0s
       ⠋  item-1   9.9s
       ⠋  item-2   9.9s
       … 197 more pending"
    `);
    expect(await screen.scrolledAway()).toEqual([]);
    await reporter.close(undefined);
  });

  it('draws on a timer, not for each event', async () => {
    const { screen, reporter, tick } = await watch({ columns: 80, rows: 12 });
    const before = screen.written.length;
    for (const event of historyOf(entries)) reporter.observe({ kind: 'events', events: [event] });
    expect(screen.written.length).toBe(before);
    tick();
    const drawn = screen.written.length;
    expect(drawn).toBeGreaterThan(before);
    await reporter.close(undefined);
  });

  it('adapts to the size of the terminal and leaves no broken lines', async () => {
    const { screen, reporter, tick } = await watch({ columns: 100, rows: 20 });
    screen.stdout.write('before\n');
    reporter.observe({ kind: 'events', events: historyOf(entries.slice(0, 8)) });
    reporter.observe({ kind: 'output', step: 'item-3', stream: 'stdout', line: 'x'.repeat(300) });
    tick();
    screen.resize(40, 20);
    expect(await screen.text()).toMatchInlineSnapshot(`
      "before
      wide · run k7x2 · 5.0s
       ● 7 running  · 193 pending
       ⠙  item-0  5.0s
       ⠙  item-1  4.9s
       ⠙  item-2  4.9s
       ⠙  item-3  4.9s  xxxxxxxxxxxxxxxxxxxx…
       ⠙  item-4  4.9s
       ⠙  item-5  4.9s
       ⠙  item-6  4.9s
       … 193 more pending"
    `);
    screen.resize(60, 8);
    expect(await screen.text()).toMatchInlineSnapshot(`
      "wide · run k7x2 · 5.0s
       ● 7 running  · 193 pending
       ⠙  item-0  5.0s
       ⠙  item-1  4.9s
       ⠙  item-2  4.9s
       ⠙  item-3  4.9s  xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx…
       … 3 more active, 193 more pending"
    `);
    await reporter.close(undefined);
    expect(await screen.text()).toBe('');
    expect((await screen.scrolledAway())[0]).toBe('before');
  });

  it('disappears when it is closed, and restores the cursor', async () => {
    const { screen, reporter, tick, isStopped } = await watch({ columns: 80, rows: 12 });
    screen.stdout.write('$ reprise run wide\n');
    reporter.observe({ kind: 'notice', message: 'stopped 2 processes\u001B[2J' });
    reporter.observe({ kind: 'events', events: historyOf(entries.slice(0, 4)) });
    tick();
    expect(screen.written.join('')).toContain('\u001B[?25l');
    await reporter.close(undefined);
    screen.stdout.write('the summary\n');
    expect(await screen.text()).toBe('$ reprise run wide\nstopped 2 processes\nthe summary');
    expect(screen.written.join('').lastIndexOf('\u001B[?25h')).toBeGreaterThan(
      screen.written.join('').lastIndexOf('\u001B[?25l'),
    );
    expect(isStopped()).toBe(true);
    expect(screen.listeners()).toBe(0);
  });

  it('keeps the output of functions above it', async () => {
    const { screen, reporter, tick } = await watch({ columns: 80, rows: 12 });
    reporter.observe({ kind: 'events', events: historyOf(entries.slice(0, 2)) });
    tick();
    console.log('printed by a step');
    tick();
    expect((await screen.text()).split('\n').slice(0, 2)).toEqual([
      'printed by a step',
      'wide · run k7x2 · 5.0s',
    ]);
    await reporter.close(undefined);
  });

  it('reads no keys, so that Ctrl-C stays a signal', async () => {
    const before = process.stdin.listenerCount('readable');
    const { reporter, tick } = await watch({ columns: 80, rows: 12 });
    tick();
    expect(process.stdin.listenerCount('readable')).toBe(before);
    expect(process.stdin.isRaw ?? false).toBe(false);
    await reporter.close(undefined);
  });

  it('loads the production build of React and restores NODE_ENV', async () => {
    vi.stubEnv('NODE_ENV', 'odd');
    const { reporter } = await watch({ columns: 80, rows: 12 });
    const { act } = await import('react');
    expect(act).toBeUndefined(); // only the development build has it
    expect(process.env['NODE_ENV']).toBe('odd');
    await reporter.close(undefined);
  });

  it('shows the history from before a resume', async () => {
    const { screen, reporter, tick } = await watch(
      { columns: 80, rows: 12 },
      { history: historyOf(entries), unicode: false },
    );
    tick();
    expect((await screen.text()).split('\n').slice(0, 2)).toMatchInlineSnapshot(`
      [
        "wide - run k7x2 - 5.0s",
        " v 120 done  x 1 failed  * 8 running  . 71 pending",
      ]
    `);
    await reporter.close(undefined);
  });

  it('uses colors if they are enabled', async () => {
    const { screen, reporter, tick } = await watch({ columns: 80, rows: 12 }, { color: true });
    reporter.observe({ kind: 'events', events: historyOf(entries) });
    tick();
    expect(screen.written.join('')).toContain('\u001B[32m');
    await reporter.close(undefined);
  });
});

it('shows a real run to its end', async () => {
  const a = shell('a', { run: 'echo hello' });
  const b = shell('b', { after: { a }, run: 'echo world' });
  const { model } = workflow('real', { steps: [a, b] });
  const { screen, reporter, tick } = await watch({ columns: 80, rows: 12 }, { workflow: model });
  const { engine } = testEngine({ observe: observation => reporter.observe(observation) });
  const result = await engine.start({ workflow: model });
  tick();
  const text = (await screen.text())
    .replace(result.runId, 'RUN')
    .replace(/[\d.]+m?s/g, 'SOON')
    .replace(/ +SOON/g, '  SOON');
  expect(text).toMatchInlineSnapshot(`
    "real · run RUN ·  SOON
     ✓ 2 done
     ✓  a  SOON
     ✓  b  SOON"
  `);
  await reporter.close(result);
  expect(await screen.text()).toBe('');
});
