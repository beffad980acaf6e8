import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import type { RecordedEntry } from '../../effects/recording/recording.ts';
import { displayWidth } from '../../terminal/text.ts';
import { composeSnapshot } from './snapshot.ts';
import { timelineLines } from './timeline.ts';

const result = { main: ['Initial commit'], worktrees: [], branches: [] };

describe('a snapshot', () => {
  it('has a section for each command in order, then the result', () => {
    const snapshot = composeSnapshot({
      steps: [
        { name: 'init', output: 'made it  \n\n', exitCode: 0 },
        { name: 'quiet', output: '', exitCode: 0 },
        { name: 'worker_a', output: '\u001B[32m✓\u001B[39m done\t!\r\n  indented', exitCode: 3 },
        { name: 'worker_b', output: '10 %\r50 %\r100 %\nhalf', exitCode: null, killed: true },
        { name: 'lost', output: '\n\nlate\n', exitCode: null },
      ],
      result: {
        main: ['Initial commit', 'fix: a'],
        tasks: [
          { name: 'fix-a', status: 'done' },
          { name: 'fix-long', status: 'waits' },
        ],
        worktrees: ['.reprise/worktrees/fix/b', '.reprise/worktrees/fix/a'],
        branches: [],
      },
    });
    expect(snapshot).toMatchInlineSnapshot(`
      "--- init ---
      made it

      --- quiet ---

      --- worker_a ---
      ✓ done  !
        indented
      exit 3

      --- worker_b ---
      100 %
      half
      killed

      --- lost ---


      late
      no exit code

      --- result ---
      main:
        Initial commit
        fix: a
      tasks:
        fix-a     done
        fix-long  waits
      worktrees left:
        .reprise/worktrees/fix/b
        .reprise/worktrees/fix/a
      branches left: none
      "
    `);
  });

  it('shows the timeline on request', () => {
    expect(composeSnapshot({ steps: [], result, timeline: [] })).toMatchInlineSnapshot(`
      "--- result ---
      main:
        Initial commit
      worktrees left: none
      branches left: none

      --- timeline ---
      no two commands share a key
      "
    `);
  });

  it('never contains escape sequences, carriage returns or trailing spaces', () => {
    const output = fc.array(
      fc.constantFrom('a', ' ', '\n', '\r', '\r\n', '\t', '\u001B[1m', '\u0007', '\u2028', '✓'),
    );
    fc.assert(
      fc.property(output, parts => {
        const snapshot = composeSnapshot({
          steps: [{ name: 's', output: parts.join(''), exitCode: 0 }],
          result,
        });
        expect(snapshot).not.toMatch(/(?!\n)\p{Cc}| \n/u);
        expect(snapshot.endsWith('\n')).toBe(true);
        expect(snapshot.endsWith('\n\n')).toBe(false);
      }),
    );
  });
});

const entry = (
  n: number,
  lane: string,
  op: string,
  keys?: { readonly reads?: readonly string[]; readonly writes?: readonly string[] },
): RecordedEntry => ({ n, lane, i: n, op, keys });
const landing = { writes: ['lock:land', 'ref:main'], reads: ['ref:b'] };

describe('the timeline', () => {
  const entries = [
    entry(0, 'init', 'store.create', { writes: ['store:x'] }),
    entry(1, 'worker_a/engine#0', 'clock.now'),
    entry(2, 'worker_a/engine#0', 'git.head', { reads: ['ref:main'] }),
    entry(3, 'worker_b/engine#0', 'git.head', { reads: ['ref:main'] }),
    entry(4, 'worker_a/engine#0/3', 'git.land.begin', landing),
    entry(5, 'worker_a/engine#0', 'store.append', { writes: ['store:a'] }),
    entry(6, 'worker_a/engine#0/3', 'git.land.end'),
    entry(12, 'worker_b/engine#0/4', 'git.land.begin', landing),
    entry(13, 'worker_b/engine#0/4', 'git.land.end'),
    entry(14, 'worker_b/engine#0/4', 'shell.run.end'),
  ];

  it('shows the shared keys of commands, with a column for each command', () => {
    expect(`\n${timelineLines(entries).join('\n')}\n`).toMatchInlineSnapshot(`
      "
         worker_a                               worker_b
      1  git.head (ref:main)
      2                                         git.head (ref:main)
      3  git.land.begin (lock:land, ref:main)
      4  git.land.end
      5                                         git.land.begin (lock:land, ref:main)
      6                                         git.land.end
      "
    `);
  });

  it('shows a reader of all rows that another command writes, but not a list of all runs', () => {
    const rows = [
      entry(0, 'a/engine#0', 'claims.list', { reads: ['claim:'] }),
      entry(1, 'b/engine#0', 'claim.take', { writes: ['claim:x'] }),
      entry(2, 'a/engine#0', 'claim.take', { writes: ['claim:y'] }),
      entry(3, 'a/engine#0', 'store.append', { reads: ['lease:a'], writes: ['store:a', 'status:a'] }),
      entry(4, 'b', 'runs.abandoned', { reads: ['abandoned:'] }),
    ];
    expect(`\n${timelineLines(rows).join('\n')}\n`).toMatchInlineSnapshot(`
      "
         a                                      b
      1  claims.list (claim:)
      2                                         claim.take (claim:x)
      "
    `);
  });

  it('reports that no key is shared', () => {
    const reads = [entry(0, 'a', 'x', { reads: ['k'] }), entry(1, 'b', 'x', { reads: ['k'] })];
    expect(timelineLines(reads)).toEqual(['no two commands share a key']);
  });

  it('is a list if there are too many commands for columns', () => {
    const many = Array.from({ length: 8 }, (_, index) =>
      entry(index, `worker_${index}`, 'git.land', landing),
    );
    expect(`\n${timelineLines(many).slice(0, 2).join('\n')}\n`).toMatchInlineSnapshot(`
      "
      1  worker_0  git.land (lock:land, ref:main)
      2  worker_1  git.land (lock:land, ref:main)
      "
    `);
  });

  it('fits in 80 columns and keeps the order', () => {
    const lanes = fc.integer({ min: 1, max: 12 });
    fc.assert(
      fc.property(lanes, fc.array(fc.nat({ max: 11 }), { minLength: 1, maxLength: 40 }), (count, who) => {
        const all = who.map((lane, n) =>
          entry(
            n,
            `a_rather_long_name_of_a_step_${lane % count}/engine#0`,
            'workspace.something-long',
            landing,
          ),
        );
        const lines = timelineLines(all);
        for (const line of lines) expect(displayWidth(line)).toBeLessThanOrEqual(80);
        const numbers = lines.map(line => Number.parseInt(line, 10)).filter(number => !Number.isNaN(number));
        expect(numbers).toEqual(numbers.toSorted((a, b) => a - b));
      }),
    );
  });
});
