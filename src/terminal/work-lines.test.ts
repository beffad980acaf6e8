import { describe, expect, it } from 'vitest';
import type { NewEvent } from '../core/events.ts';
import type { StepModel, WorkflowModel } from '../workflow/model.ts';
import { formatGraph } from './graph.ts';
import { formatMermaid } from './mermaid.ts';
import { formatHistory } from './run/history.ts';
import { createPlainReporter } from './run/plain.ts';
import {
  completed,
  historyOf,
  noon,
  ofWorker,
  selected,
  sessionEnded,
  threeWorkers,
  workspaceSaved,
} from './test-support.ts';

const step = (more: Pick<StepModel, 'id' | 'body'> & Partial<StepModel>): StepModel => ({
  needs: [],
  optional: false,
  timeout: {},
  fingerprint: 'f',
  ...more,
});

const work = { workspace: { kind: 'none' }, setup: [], teardown: [], checks: [], artifacts: [] } as const;
const agentBody = {
  kind: 'agent',
  agent: 'coder',
  prompt: () => 'do it',
  env: () => ({}),
  rework: 0,
  work,
} as const;

const fix: WorkflowModel = {
  name: 'repair',
  input: { parse: () => ({}), fields: [] },
  onFailure: 'fail-fast',
  steps: [
    step({
      id: 'fix',
      body: agentBody,
      fanOut: {
        kind: 'concurrency',
        items: () => [{}, {}, {}],
        onFailure: 'continue',
        select: { gates: [] },
      },
    }),
    step({
      id: 'docs',
      body: agentBody,
      fanOut: {
        kind: 'matrix',
        items: () => {
          throw new Error('known when it runs');
        },
        maxParallel: 2,
        onFailure: 'continue',
      },
    }),
    step({
      id: 'land',
      needs: [{ id: 'fix', tolerant: false }],
      body: { kind: 'land', onto: () => 'main', from: 'fix' },
    }),
  ],
};

const denials = [{ tool: 'Bash', message: 'no', lineToAdd: 'allow: ["Bash(ls)"]' }];

const eventful: readonly (readonly [number, NewEvent])[] = [
  ...threeWorkers,
  [900, ofWorker(0, sessionEnded('fix', 0.25, { denials }))],
  [950, ofWorker(0, workspaceSaved('fix'))],
  [1000, ofWorker(0, completed('fix'))],
  [
    1000,
    { type: 'step.paused', step: 'fix', worker: 1, attempt: 1, data: { reason: 'plan', delayMs: 90_000 } },
  ],
  [1100, selected('fix', 0, [7])],
  [1100, completed('fix')],
  [
    1200,
    { type: 'landing.started', step: 'land', attempt: 1, data: { onto: 'main', branch: 'reprise/fix-0' } },
  ],
  [
    1300,
    {
      type: 'landing.ended',
      step: 'land',
      attempt: 1,
      data: { outcome: 'conflict', onto: 'main', branch: 'reprise/fix-0', message: 'a.txt\u001B[2J\nb.txt' },
    },
  ],
];

const withoutTimes = (text: string) => text.replace(/\d\d:\d\d:\d\d(\.\d+)?/g, '<time>');

describe('the log of a run with agents', () => {
  const printed = (verbose: boolean): string => {
    let text = '';
    const reporter = createPlainReporter({
      write: more => {
        text += more;
      },
      color: false,
      workflow: fix,
      now: () => noon,
      verbose,
    });
    reporter.observe({ kind: 'events', events: historyOf(eventful) });
    const event = { type: 'tool-start', id: '1', name: 'Edit', input: { file_path: 'a.ts' } } as const;
    reporter.observe({ kind: 'agent', step: 'fix', worker: 2, event });
    reporter.observe({ kind: 'output', step: 'fix', worker: 2, stream: 'stdout', line: 'ok' });
    return withoutTimes(text);
  };

  it('names copies, and shows selections, denials and landings', () => {
    expect(printed(false)).toMatchInlineSnapshot(`
      "<time> repair  run k7x2 started: 2 steps
      <time> fix     started
      <time> fix     3 copies
      <time> fix:0   started
      <time> fix:0   agent coder (claude) started
      <time> fix:1   started
      <time> fix:1   agent coder (claude) started
      <time> fix:2   started
      <time> fix:2   agent coder (claude) started
      <time> fix:0   was denied Bash (to allow it: allow: ["Bash(ls)"])
      <time> fix:0   saved 2 files, +10 -3 on reprise/fix-0
      <time> fix:0   ok 900ms, $0.25
      <time> fix:1   pausing for 1m 30s: plan
      <time> fix     copy 0 was selected by rank with score 7 (1 of 1 passed)
      <time> fix     ok 1.1s, $0.25
      <time> land    landing reprise/fix-0 on main
      <time> land    reprise/fix-0 conflicts with main: a.txt b.txt
      "
    `);
  });

  it('shows the actions of agents with `verbose`', () => {
    expect(printed(true).split('\n').slice(-3)).toEqual([
      '<time> fix:2   | Edit a.ts',
      '<time> fix:2   | ok',
      '',
    ]);
  });
});

describe('a history with agents', () => {
  it('has a line for every event', () => {
    const text = formatHistory(historyOf(eventful), { color: false, columns: 110 });
    expect(withoutTimes(text)).toMatchInlineSnapshot(`
      " 1  <time>  run.started               repair
       2  <time>  step.started       fix
       3  <time>  fanout.expanded    fix    3 copies
       4  <time>  step.started       fix:0
       5  <time>  workspace.created  fix:0  .reprise/workspaces/fix-0 on reprise/fix-0
       6  <time>  session.started    fix:0  coder (claude) id-0
       7  <time>  step.started       fix:1
       8  <time>  workspace.created  fix:1  .reprise/workspaces/fix-1 on reprise/fix-1
       9  <time>  session.started    fix:1  coder (claude) id-1
      10  <time>  step.started       fix:2
      11  <time>  workspace.created  fix:2  .reprise/workspaces/fix-2 on reprise/fix-2
      12  <time>  session.started    fix:2  coder (claude) id-2
      13  <time>  session.ended      fix:0  ok, $0.25, 1.5k tokens, denied Bash
      14  <time>  workspace.saved    fix:0  2 files, +10 -3, cccccccccc
      15  <time>  step.completed     fix:0
      16  <time>  step.paused        fix:1  for 1m 30s: plan
      17  <time>  selection.made     fix    copy 0 was selected by rank with score 7 (1 of 1 passed)
      18  <time>  step.completed     fix
      19  <time>  landing.started    land   reprise/fix-0 onto main
      20  <time>  landing.ended      land   reprise/fix-0 conflicts with main: a.txt b.txt
      "
    `);
  });
});

describe('a graph with agents', () => {
  it('shows agents, the number of copies and landings', () => {
    expect(formatGraph(fix, { color: false })).toMatchInlineSnapshot(`
      "repair: 3 steps
       1 ─┬─ fix   agent coder · x3 · selects one
          └─ docs  agent coder · matrix, max 2 in parallel
       2 ─── land  lands fix                                ← fix
      "
    `);
    expect(formatMermaid(fix)).toMatchInlineSnapshot(`
      "flowchart TD
        s0(["fix<br/>agent coder, x3, selects one"])
        s1(["docs<br/>agent coder, matrix, max 2 in parallel"])
        s2["land<br/>lands fix"]
        s0 --> s2
      "
    `);
  });
});
