import { inChild } from '../lib/child.mjs';
import { bytes, percent, table } from '../lib/format.mjs';

/** Runs that are recorded as cases: calls of tools in a session, what the agent prints, workers. */
const runs = [
  ['10 calls', 10, 'whole', 1],
  ['10 calls, with partial messages', 10, 'partial', 1],
  ['25 calls', 25, 'whole', 1],
  ['25 calls, with its thoughts', 25, 'whole', 1, 'thoughts'],
  ['25 calls, with partial messages', 25, 'partial', 1],
  ['40 calls', 40, 'whole', 1],
  ['three workers, 25 calls each', 25, 'whole', 3],
  ['three workers, 25 calls each, with partial messages', 25, 'partial', 3],
];

const exactPercent = value => `${(value * 100).toFixed(1)} %`;

const keptOf = ({ tape, score, sessions, patches, blobs }) => tape + score + sessions + patches + blobs;

/** How much of what agents print a recorded run keeps. */
export function tapeSize() {
  const measured = runs.map(([name, ...args]) => ({ name, ...inChild('tape-size', 'run', ...args) }));
  const captured = inChild('tape-size', 'captured');
  const of = name => measured.find(run => run.name === name);
  const share = run => keptOf(run) / run.raw;
  const small = of('10 calls');
  const fixed = small.tape + small.score;
  const target = name => ({
    what: `a recorded run is at most a fifth of what its agents printed: ${name}`,
    value: share(of(name)),
    most: 0.2,
    // Bytes do not depend on what else the machine does.
    tolerance: 1,
    show: exactPercent,
  });
  return {
    title: 'The size of a recorded run',
    body: [
      table(
        [
          'run',
          'printed',
          'kept',
          'of it',
          'tape',
          'score',
          'sessions',
          'patches',
          'packs and long texts',
          'beside it: snapshot',
          'base',
        ],
        measured.map(run => [
          run.name,
          bytes(run.raw),
          bytes(keptOf(run)),
          `**${exactPercent(share(run))}**`,
          ...[run.tape, run.score, run.sessions, run.patches, run.blobs, run.snapshot, run.case].map(bytes),
        ]),
      ),
      table(
        ['captured stream', 'printed', 'file of the session', 'of it', 'with the tape and score of a run'],
        captured.map(({ name, raw, kept }) => [
          name,
          bytes(raw),
          bytes(kept),
          percent(kept / raw),
          percent((kept + fixed) / raw),
        ]),
      ),
    ].join('\n\n'),
    notes: [
      'The runs are recorded with `reprise test --record`, with a program in the place of Claude Code that prints what it would print (`bench/lib/claude-session.mjs`) and does the edits. Reprise asks Claude Code for whole messages; with `args: [--include-partial-messages]` it prints deltas too, of which nothing is kept. `base` is the case file with the files that the run began with.',
      `A run has a tape and a score of some ${bytes(fixed)} however little its agents print, so that a fifth is kept only from some 210 KiB of whole messages on. Captured streams are conversations of one or two calls with lists of tools and commands taken out; in their table only the files of sessions are measured, and those of agents without deltas and long outputs keep more than a fifth.`,
    ],
    targets: [
      target('25 calls'),
      target('three workers, 25 calls each'),
      target('25 calls, with partial messages'),
    ],
  };
}
