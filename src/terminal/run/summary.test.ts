import { describe, expect, it } from 'vitest';
import { testEngine } from '../../../test/support/engine.ts';
import type { NewEvent } from '../../core/events.ts';
import { approve, shell, step, workflow } from '../../workflow/builder/index.ts';
import {
  approvalRequested,
  cancelled,
  completed,
  exitedWith,
  failed,
  historyOf,
  ofWorker,
  retrying,
  runCompleted,
  runFailed,
  runStarted,
  selected,
  sessionEnded,
  skipped,
  started,
  suspended,
  threeWorkers,
  workspaceSaved,
} from '../test-support.ts';
import { formatSummary, type SummaryOptions } from './summary.ts';

type Entries = readonly (readonly [number, NewEvent])[];

const summaryOf = (entries: Entries, options: Partial<SummaryOptions> = {}): string =>
  formatSummary({ result: undefined, history: historyOf(entries), color: false, columns: 80, ...options });

const parallel: Entries = [
  [0, runStarted('order', ['plan', 'code', 'docs', 'lint'])],
  [0, started('plan')],
  [400, completed('plan')],
  [400, started('code')],
  [400, started('docs')],
  [400, started('lint')],
  [500, retrying('lint', 1000)],
  [1500, started('lint', 2)],
  [2000, completed('lint', 2)],
  [2200, completed('docs')],
  [2300, completed('code')],
];

describe('the summary of a run', () => {
  it('shows how much of the work overlapped', () => {
    expect(summaryOf([...parallel, [2300, runCompleted]])).toMatchInlineSnapshot(`
      "✓ order completed in 2.3s

        ✓  plan  400ms
        ✓  code   1.9s
        ✓  docs   1.8s
        ✓  lint   1.6s  2 attempts
        4 steps, peak concurrency 3, 2.3s wall, 4.7s total

      next: reprise show k7x2     show the run and its output
            reprise history k7x2  show all events
      "
    `);
  });

  it('names the first cause of a failure, the log and the commands to type', () => {
    const error = {
      ...exitedWith(1, 'FAIL a.test.ts\n  expected 1'),
      hint: 'The whole output is in logs/k7x2/test.2.log',
    };
    expect(
      summaryOf([
        [0, runStarted('order', ['build', 'test', 'docs', 'deploy'])],
        [0, started('build')],
        [1200, completed('build')],
        [1200, started('test')],
        [1200, started('docs')],
        [2000, retrying('test', 100)],
        [2100, started('test', 2)],
        [2300, failed('test', error, 2)],
        [2300, cancelled('docs', 'test failed')],
        [2300, skipped('deploy', 'test')],
        [2300, runFailed('test', error)],
      ]),
    ).toMatchInlineSnapshot(`
      "✗ order failed after 2.3s

        ✓  build   1.2s
        ✗  test    1.1s  2 attempts  exited with code 1
        ■  docs    1.1s              test failed
        –  deploy                    test failed
        4 steps, peak concurrency 2, 2.3s wall, 3.3s total

      test: exited with code 1 [EXIT_NONZERO]
        | FAIL a.test.ts
        |   expected 1
        hint: The whole output is in logs/k7x2/test.2.log

      next: reprise resume k7x2   after fixing it; finished steps are kept
            reprise history k7x2  show all events
      "
    `);
  });

  it('shows what a waiting run is waiting for and how to answer', () => {
    expect(
      summaryOf([
        [0, runStarted('order', ['build', 'ok', 'signed', 'ship'])],
        [0, started('build')],
        [900, completed('build')],
        [900, started('ok')],
        [900, approvalRequested('ok', 'Land it?')],
        [900, suspended('ok')],
        [900, started('signed')],
        [910, suspended('signed', "cla's here")],
      ]),
    ).toMatchInlineSnapshot(`
      "… order is waiting for you

        ✓  build   900ms
        ◔  ok             waiting for approval: Land it?
        ◔  signed         waiting for signal cla's here
        ·  ship
        4 steps, peak concurrency 1, 910ms wall, 910ms total

      next: reprise approve k7x2 ok              answer: approve or reject
            reprise signal k7x2 'cla'\\''s here'  the signal that signed needs
            reprise resume k7x2                  then continue
      "
    `);
  });

  it('offers to resume a cancelled run', () => {
    expect(
      summaryOf([
        [0, runStarted('order', ['build', 'test'])],
        [0, started('build')],
        [700, { type: 'cancel.requested', data: { reason: 'SIGINT' } }],
        [900, cancelled('build', 'SIGINT')],
        [900, { type: 'step.skipped', step: 'test', data: { fingerprint: 'f', reason: 'cancelled' } }],
        [900, { type: 'run.cancelled', data: { reason: 'SIGINT' } }],
      ]),
    ).toMatchInlineSnapshot(`
      "■ order was cancelled after 900ms: SIGINT

        ■  build  900ms  SIGINT
        –  test          the run was cancelled
        2 steps, peak concurrency 1, 900ms wall, 900ms total

      next: reprise resume k7x2   continue where it stopped
            reprise history k7x2  show all events
      "
    `);
  });

  it('offers to resume a run whose process died', () => {
    expect(summaryOf(parallel.slice(0, 8))).toMatchInlineSnapshot(`
      "■ order was interrupted after 1.5s: its process died

        ✓  plan  400ms
        ●  code                     was running
        ●  docs                     was running
        ●  lint         2 attempts  was running
        4 steps, peak concurrency 3, 1.5s wall, 500ms total

      next: reprise resume k7x2   continue; finished steps are kept
            reprise history k7x2  show all events
      "
    `);
  });

  it('does not call a run interrupted while a process is running it', () => {
    expect(summaryOf(parallel.slice(0, 8), { running: true }).split('\n')[0]).toMatchInlineSnapshot(
      `"● order is running (last event after 1.5s)"`,
    );
  });

  it('nests the steps of child workflows and counts resumes', () => {
    expect(
      summaryOf([
        [0, runStarted('order', ['release', 'release/pack', 'release/push', 'tell'])],
        [0, started('release')],
        [0, started('release/pack')],
        [500, completed('release/pack')],
        [500, started('release/push')],
        [900_000, { type: 'run.resumed', data: {} }],
        [900_000, { type: 'step.interrupted', step: 'release/push', attempt: 1, data: {} }],
        [900_000, started('release/push')],
        [900_300, completed('release/push')],
        [900_300, completed('release')],
        [900_300, started('tell')],
        [900_400, completed('tell')],
        [900_400, runCompleted],
      ]),
    ).toMatchInlineSnapshot(`
      "✓ order completed in 900ms, resumed once

        ✓  release  800ms
        ✓    pack   500ms
        ✓    push   300ms
        ✓  tell     100ms
        3 steps, peak concurrency 1, 900ms wall, 900ms total

      next: reprise show k7x2     show the run and its output
            reprise history k7x2  show all events
      "
    `);
  });

  it('shows the steps of a large run that need attention and counts the rest', () => {
    const paths = Array.from({ length: 200 }, (_, index) => `item-${index}`);
    const entries: (readonly [number, NewEvent])[] = [[0, runStarted('wide', paths)]];
    paths.forEach((path, index) => {
      if (index % 50 === 7) entries.push([index, started(path)], [index + 40, failed(path)]);
      else if (index % 60 === 8) entries.push([index, skipped(path)]);
      else entries.push([index, started(path)], [index + 40, completed(path)]);
    });
    const text = summaryOf([...entries, [300, runFailed('item-7')]]);
    expect(text).toMatchInlineSnapshot(`
      "✗ wide failed after 300ms

        ✗  item-7    40ms  exited with code 1
        ✗  item-57   40ms  exited with code 1
        ✗  item-107  40ms  exited with code 1
        ✗  item-157  40ms  exited with code 1
        … 192 completed, 4 skipped
        200 steps, peak concurrency 1, 300ms wall, 7.8s total

      item-7: exited with code 1 [EXIT_NONZERO]

      next: reprise resume k7x2   after fixing it; finished steps are kept
            reprise history k7x2  show all events
      "
    `);
    expect(text.split('\n').length).toBeLessThan(22);
  });

  it('fits a narrow terminal and one without Unicode', () => {
    const text = summaryOf([...parallel, [2300, runFailed('code')]], { columns: 40, unicode: false });
    expect(text).toMatchInlineSnapshot(`
      "x order failed after 2.3s

        v  plan  400ms
        v  code   1.9s
        v  docs   1.8s
        v  lint   1.6s  2 attempts
        4 steps, peak concurrency 3, 2.3s wall, 4.7s total

      code: exited with code 1 [EXIT_NONZERO]

      next: reprise resume k7x2
            reprise history k7x2
      "
    `);
    expect(text).toMatch(/^[\n\u0020-\u007E]*$/);
  });

  it('names the log of a shell step if its error does not', () => {
    const error = { code: 'TIMEOUT', message: 'the attempt took longer than 1s' };
    const { model } = workflow('order', { steps: [shell('slow', { run: 'sleep 9' })] });
    const history: Entries = [
      [0, runStarted('order', ['slow'])],
      [0, started('slow')],
      [1000, failed('slow', error)],
      [1000, runFailed('slow', error)],
    ];
    expect(summaryOf(history, { workflow: model, stateDir: '.reprise/state' })).toContain(
      '\n  log: .reprise/state/logs/k7x2/slow.1.log\n',
    );
  });

  it('names no log if the step failed before a process was started', () => {
    const error = { code: 'EXPRESSION_FAILED', message: 'no such output' };
    const { model } = workflow('order', { steps: [shell('slow', { run: 'sleep 9' })] });
    const history: Entries = [
      [0, runStarted('order', ['slow'])],
      [0, started('slow')],
      [0, failed('slow', error)],
      [0, runFailed('slow', error)],
    ];
    expect(summaryOf(history, { workflow: model, stateDir: '.reprise/state' })).not.toContain('log:');
  });

  it('appends the suffix to every command', () => {
    const text = summaryOf([...parallel, [2300, runCompleted]], { commandSuffix: ' --state-dir /tmp/ss' });
    expect(text).toContain('next: reprise show k7x2 --state-dir /tmp/ss     show the run and its output\n');
    expect(text).toContain('      reprise history k7x2 --state-dir /tmp/ss  show all events\n');
  });

  it('uses colors only if they are enabled', () => {
    expect(summaryOf([...parallel, [2300, runCompleted]], { color: true })).toContain(
      '\u001B[32m✓\u001B[39m',
    );
  });

  it('removes control characters', () => {
    const evil = '\u001B[2Jgone\u0007';
    const text = summaryOf([
      [0, runStarted(evil, ['a', evil])],
      [0, started('a')],
      [0, failed('a', { code: 'STEP_FAILED', message: `${evil}\n${evil}`, hint: evil, stack: evil })],
      [0, cancelled(evil, evil)],
      [0, runFailed('a', { code: 'STEP_FAILED', message: `${evil}\n${evil}`, hint: evil, stack: evil })],
    ]);
    expect(text.replaceAll('\n', '')).not.toMatch(/\p{Cc}/u);
  });
});

it('shows the stack frame of the function that threw', async () => {
  const bad = step('bad', {
    run: () => {
      throw new TypeError('no such thing');
    },
  });
  const { model } = workflow('real', { steps: [bad] });
  const { engine, history } = testEngine();
  const result = await engine.start({ workflow: model });
  const text = formatSummary({
    result,
    history: await history(result.runId),
    workflow: model,
    color: false,
    columns: 80,
  });
  expect(text).toContain('bad: no such thing [STEP_FAILED]\n');
  expect(text).toMatch(/\n {2}at .*summary\.test\.ts:\d+:\d+\)?\n/);
});

it('suggests the first choice of an approval that has no choice `approve`', async () => {
  const pick = approve('pick', { message: 'Which?', choices: ['blue', 'reject'] });
  const { model } = workflow('real', { steps: [pick] });
  const { engine, history } = testEngine();
  const result = await engine.start({ workflow: model });
  const text = formatSummary({ result, history: await history(result.runId), color: false, columns: 80 });
  expect(text).toContain(
    `next: reprise approve ${result.runId} pick --choice blue  answer: blue or reject\n`,
  );
  expect(text).toContain(`      reprise resume ${result.runId} `);
});

describe('the summary of a run with agents', () => {
  const fixed: Entries = [
    ...threeWorkers,
    ...[0, 1, 2].flatMap((worker): [number, NewEvent][] => [
      [900, ofWorker(worker, sessionEnded('fix', worker === 2 ? null : 0.25))],
      [1000, ofWorker(worker, workspaceSaved('fix'))],
      [1000, ofWorker(worker, completed('fix'))],
    ]),
    [1100, selected('fix', 1, [3, 8, 5])],
    [1100, completed('fix')],
    [1100, started('lint')],
    [1300, completed('lint')],
    [1300, runCompleted],
  ];

  it('shows the selected copy, the branches, the cost and how to continue a session', () => {
    expect(summaryOf(fixed, { columns: 100 })).toMatchInlineSnapshot(`
      "✓ repair completed in 1.3s

        ✓  fix       1.1s  >= $0.50  3 of 3 copies succeeded, copy 1 selected
        ✓    fix:0  900ms     $0.25  2 files, +10 -3
        ✓    fix:1  900ms     $0.25  selected, 2 files, +10 -3
        ✓    fix:2  900ms   unknown  2 files, +10 -3
        ✓  lint     200ms
        2 steps, 3 copies, peak concurrency 3, 1.3s wall, 2.9s total
        agents: >= $0.50, 4.5k tokens

      branches:
        fix:1  selected      1 commit, 2 files, +10 -3  reprise/fix-1
        fix:0  not selected  1 commit, 2 files, +10 -3  reprise/fix-0
        fix:2  not selected  1 commit, 2 files, +10 -3  reprise/fix-2

      continue an agent session:
        cd .reprise/workspaces/fix-1 && claude --resume id-1
        cd .reprise/workspaces/fix-0 && claude --resume id-0
        cd .reprise/workspaces/fix-2 && claude --resume id-2

      next: reprise diff k7x2 fix:1  show the changes of fix:1
            reprise land k7x2 fix:1  land it on your branch
            reprise show k7x2        show the run and its output
            reprise history k7x2     show all events
      "
    `);
  });

  it('offers to land the work of a copy only until the run has landed it', () => {
    const landed: NewEvent = {
      type: 'landing.ended',
      step: 'lint',
      attempt: 1,
      data: { outcome: 'landed', onto: 'main', branch: 'reprise/fix-1', commit: 'd'.repeat(40), commits: 1 },
    };
    const text = summaryOf([...fixed.slice(0, -2), [1250, landed], ...fixed.slice(-2)]);
    expect(text).toContain('landed 1 commit on main (dddddddddd)');
    expect(text).not.toContain('reprise land');
  });

  it('lists a denied tool once, with the line that allows it, and suggests the log of the agent', () => {
    const lineToAdd = 'allow: ["Bash(npm test)"]';
    const denials = [{ tool: 'Bash', message: 'no', lineToAdd }];
    const error = { code: 'PERMISSION_DENIED', message: 'Bash(npm test) is not allowed' };
    const text = summaryOf([
      ...threeWorkers,
      ...[0, 1].flatMap((worker): [number, NewEvent][] => [
        [900, ofWorker(worker, sessionEnded('fix', 0.25, { outcome: 'failed', denials }))],
        [1000, ofWorker(worker, failed('fix', error))],
      ]),
      [1000, ofWorker(2, cancelled('fix', 'fix:0 failed'))],
      [1000, failed('fix', error)],
      [1000, runFailed('fix:0', error)],
    ]);
    expect(text).toContain(`denied:
  fix:0, fix:1  Bash  to allow it, add to the agent coder: allow: ["Bash(npm test)"]
`);
    expect(text).toContain('next: reprise logs k7x2 fix:0');
  });

  it('lists the artifacts of a step without control characters', () => {
    const text = summaryOf([
      [0, runStarted('repair', ['fix'])],
      [0, started('fix')],
      [
        500,
        {
          type: 'step.completed',
          step: 'fix',
          attempt: 1,
          data: { output: null, artifacts: [{ name: 'report\u001B[2J', path: 'a/b.html' }] },
        },
      ],
      [500, runCompleted],
    ]);
    expect(text).toContain('artifacts:\n  fix  report  a/b.html\n');
    expect(text).not.toContain('\u001B');
  });
});
