import { describe, expect, it } from 'vitest';
import type { NewEvent } from '../../core/events.ts';
import { viewOf } from '../../view/run-view.ts';
import { glyphsFor } from '../glyphs.ts';
import {
  approvalRequested,
  completed,
  expanded,
  failed,
  historyOf,
  noon,
  ofWorker,
  retrying,
  runStarted,
  sessionEnded,
  sessionStarted,
  started,
  suspended,
} from '../test-support.ts';
import { displayWidth, painter } from '../text.ts';
import { type FrameOptions, frameLines } from './live-frame.ts';

type Entries = readonly (readonly [number, NewEvent])[];

function frame(
  entries: Entries,
  options: Partial<FrameOptions> = {},
  outputs: Readonly<Record<string, string>> = {},
): readonly string[] {
  const view = viewOf(historyOf(entries));
  for (const [step, line] of Object.entries(outputs)) view.output({ step }, line);
  return frameLines(view, {
    workflow: 'order',
    columns: 80,
    rows: 24,
    now: noon + 5000,
    tick: 0,
    glyphs: glyphsFor(),
    paint: painter(false),
    attemptLimit: () => 3,
    ...options,
  });
}

const busy: Entries = [
  [
    0,
    runStarted('order', [
      'plan',
      'code',
      'lint',
      'flaky',
      'release',
      'release/pack',
      'release/push',
      'ok',
      'sig',
      'ship',
    ]),
  ],
  [0, started('plan')],
  [400, completed('plan')],
  [400, started('code')],
  [400, started('lint')],
  [700, failed('lint')],
  [700, started('flaky')],
  [900, retrying('flaky', 6000)],
  [900, started('release')],
  [900, started('release/pack')],
  [1000, started('release/push', 2)],
  [1000, started('ok')],
  [1000, approvalRequested('ok', 'Land it?')],
  [1000, suspended('ok')],
  [1000, started('sig')],
  [1100, suspended('sig', 'go')],
];

describe('a frame', () => {
  it('shows running, waiting and ended steps', () => {
    expect(
      frame(busy, {}, { code: '\u001B[32mcompiling\u001B[0m a.c\r', 'release/push': 'x'.repeat(200) }),
    ).toMatchInlineSnapshot(`
      [
        "order · run k7x2 · 5.0s",
        " ✓ 1 done  ✗ 1 failed  ● 3 running  ↻ 1 retrying  ◔ 2 waiting  · 1 pending",
        " ✓  plan     400ms",
        " ✗  lint     300ms  exited with code 1",
        " ⠋  code      4.6s  compiling a.c",
        " ↻  flaky     4.3s  retrying in 1.9s: exited with code 1",
        " ⠋  release   4.1s",
        " ⠋    pack    4.1s",
        " ⠋    push    4.0s  attempt 2 of 3 · xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx…",
        " ◔  ok        4.0s  waiting for approval: Land it?",
        " ◔  sig       4.0s  waiting for signal go",
        " … 1 more pending",
      ]
    `);
  });

  it('advances the spinner and the clock', () => {
    const entries: Entries = [
      [0, runStarted('order', ['a'])],
      [0, started('a')],
    ];
    expect(frame(entries, { tick: 3, now: noon + 61_000 })).toMatchInlineSnapshot(`
      [
        "order · run k7x2 · 1m 01s",
        " ● 1 running",
        " ⠸  a  1m 01s",
      ]
    `);
  });

  it('shows that the run is being cancelled', () => {
    const [header] = frame([...busy, [2000, { type: 'cancel.requested', data: { reason: 'SIGINT' } }]]);
    expect(header).toMatchInlineSnapshot(`"order · run k7x2 · 5.0s · cancelling: SIGINT"`);
  });

  it('prefers approvals to running steps, and those to ended steps, in a small terminal', () => {
    expect(frame(busy, { rows: 8, columns: 40 })).toMatchInlineSnapshot(`
      [
        "order · run k7x2 · 5.0s",
        " ✓1 ✗1 ●3 ↻1 ◔2 ·1",
        " ⠋  code          4.6s",
        " ⠋  release/pack  4.1s",
        " ⠋  release/push  4.0s  attempt 2 of 3",
        " ◔  ok            4.0s  waiting for ap…",
        " … 2 more active, 1 more pending",
      ]
    `);
  });

  it('does not show a failure that is being rerun', () => {
    const again: Entries = [
      ...busy,
      [2000, { type: 'run.resumed', data: { invalidated: ['lint'] } }],
      [2000, started('lint', 2)],
    ];
    expect(frame(again).filter(line => line.includes('lint'))).toMatchInlineSnapshot(`
      [
        " ⠋  lint      3.0s  attempt 2 of 3",
      ]
    `);
  });

  it('is always narrower and shorter than the terminal', () => {
    const steps = Array.from({ length: 200 }, (_, index) => `step-${index}`);
    const many: Entries = [
      [0, runStarted('a-workflow-with-quite-a-long-name', steps)],
      ...steps.slice(0, 80).map(step => [0, started(step)] as const),
      ...steps.slice(0, 50).map(step => [100, completed(step)] as const),
    ];
    for (const rows of [1, 2, 3, 4, 10, 24, 60]) {
      for (const columns of [10, 20, 40, 80, 200]) {
        const lines = frame(many, { rows, columns });
        expect(lines.length).toBeLessThan(Math.max(2, rows));
        for (const line of lines) expect(displayWidth(line)).toBeLessThan(columns);
      }
    }
  });
});

const crowd = (workers: number): Entries => [
  [0, runStarted('order', ['fix', 'lint'])],
  [0, started('fix')],
  [0, expanded('fix', workers)],
  ...Array.from({ length: workers }, (_, worker): [number, NewEvent][] => [
    [0, ofWorker(worker, started('fix'))],
    [0, ofWorker(worker, sessionStarted('fix'))],
  ]).flat(),
];

describe('a frame of many copies', () => {
  const ended: Entries = [
    [900, ofWorker(0, sessionEnded('fix', 0.5))],
    [1000, ofWorker(0, completed('fix'))],
  ];
  const draw = (columns: number, rows: number) => {
    const view = viewOf(historyOf([...crowd(20), ...ended]));
    view.agent({ step: 'fix', worker: 3 }, { type: 'text', text: '\u001B[31mEdits\u001B[0m a\nb' });
    view.agent(
      { step: 'fix', worker: 3 },
      { type: 'usage', inputTokens: 12_000, outputTokens: 300, cachedTokens: 0, costUsd: null },
    );
    return frameLines(view, {
      workflow: 'order',
      columns,
      rows,
      now: noon + 5000,
      tick: 0,
      glyphs: glyphsFor(),
      paint: painter(false),
      attemptLimit: () => 3,
    });
  };

  it('shows running copies first in a small terminal, and counts the rest', () => {
    const lines = draw(60, 12);
    expect(lines).toMatchInlineSnapshot(`
      [
        "order · run k7x2 · 5.0s · >= $0.50",
        " ✓ 1 done  ● 19 running  · 1 pending",
        " ⠋  fix:1  5.0s",
        " ⠋  fix:2  5.0s",
        " ⠋  fix:3  5.0s  12.3k tokens  Edits a",
        " ⠋  fix:4  5.0s",
        " ⠋  fix:5  5.0s",
        " ⠋  fix:6  5.0s",
        " ⠋  fix:7  5.0s",
        " ⠋  fix:8  5.0s",
        " … 11 more active, 1 more pending",
      ]
    `);
    for (const line of lines) expect(displayWidth(line)).toBeLessThan(60);
    expect(lines.length).toBeLessThan(12);
  });

  it('shows all running copies in an ordinary terminal', () => {
    const lines = draw(80, 24);
    expect(lines).toHaveLength(23);
    expect(lines[0]).toBe('order · run k7x2 · 5.0s · >= $0.50');
    expect(lines.filter(line => /fix:\d+/.test(line))).toHaveLength(19);
    expect(lines.at(-1)).toBe(' … 1 more pending');
  });
});
