import { inChild } from '../lib/child.ts';
import { bytes, percent, table } from '../lib/format.ts';

/** Runs that are recorded as cases: tool calls per session, output of the agent, number of copies. */
const runs = [
  ['10 calls', 10, 'whole', 1],
  ['10 calls, with partial messages', 10, 'partial', 1],
  ['25 calls', 25, 'whole', 1],
  ['25 calls, with thinking', 25, 'whole', 1, 'thoughts'],
  ['25 calls, with partial messages', 25, 'partial', 1],
  ['40 calls', 40, 'whole', 1],
  ['three copies, 25 calls each', 25, 'whole', 3],
  ['three copies, 25 calls each, with partial messages', 25, 'partial', 3],
];

const exactPercent = value => `${(value * 100).toFixed(1)} %`;

const keptOf = ({ tape, score, sessions, patches, blobs }) => tape + score + sessions + patches + blobs;

/** Share of the output of agents that a recording keeps. */
export function tapeSize() {
  const measured = runs.map(([name, ...args]) => ({ name, ...inChild('tape-size', 'run', ...args) }));
  const captured = inChild('tape-size', 'captured');
  const of = name => measured.find(run => run.name === name);
  const share = run => keptOf(run) / run.raw;
  const small = of('10 calls');
  const fixed = small.tape + small.score;
  const target = name => ({
    what: `a recording is at most a fifth of the output of its agents: ${name}`,
    value: share(of(name)),
    most: 0.2,
    // Sizes do not depend on the load of the machine.
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
          'share',
          'tape',
          'score',
          'sessions',
          'patches',
          'packs and long texts',
          'not counted: snapshot',
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
        ['captured stream', 'printed', 'session file', 'share', 'share with the tape and score of a run'],
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
      'The runs are recorded with `reprise test --record`. A program stands in for Claude Code (`bench/lib/claude-session.ts`): it prints the same messages and makes the edits. Reprise asks Claude Code for whole messages. With `args: [--include-partial-messages]` it also prints deltas, none of which are kept. `base` is the case file with the files that the run starts from.',
      `The tape and the score of a run take about ${bytes(fixed)}, however little its agents print. The share therefore falls below a fifth only from about 210 KiB of whole messages. Captured streams are conversations of one or two calls, without their lists of tools and commands. Their table measures session files only; agents without deltas and long outputs keep more than a fifth.`,
    ],
    targets: [
      target('25 calls'),
      target('three copies, 25 calls each'),
      target('25 calls, with partial messages'),
    ],
  };
}
