import type { BenchCase } from '../lib/bench-case.ts';
import { inChild } from '../lib/child.ts';
import { bytes, percent, table } from '../lib/format.ts';

const whole = { isPartial: false, workers: 1, showsThinking: false };
const partial = { ...whole, isPartial: true };

/** Runs that are recorded as cases. */
const runs = [
  { name: '10 calls', ...whole, calls: 10 },
  { name: '10 calls, with partial messages', ...partial, calls: 10 },
  { name: '25 calls', ...whole, calls: 25 },
  { name: '25 calls, with thinking', ...whole, calls: 25, showsThinking: true },
  { name: '25 calls, with partial messages', ...partial, calls: 25 },
  { name: '40 calls', ...whole, calls: 40 },
  { name: 'three copies, 25 calls each', ...whole, calls: 25, workers: 3 },
  { name: 'three copies, 25 calls each, with partial messages', ...partial, calls: 25, workers: 3 },
];

const exactPercent = (value: number) => `${(value * 100).toFixed(1)} %`;

const measure = (run: (typeof runs)[number]) => ({ name: run.name, ...inChild('tape-size', 'run', run) });

type Measured = ReturnType<typeof measure>;

const keptOf = ({ tape, score, sessions, patches, blobs }: Measured) =>
  tape + score + sessions + patches + blobs;

/** Share of the output of agents that a recording keeps. */
export const tapeSize: BenchCase = () => {
  const measured = runs.map(measure);
  const captured = inChild('tape-size', 'captured');
  const of = (name: string) => {
    const found = measured.find(run => run.name === name);
    if (!found) throw new Error(`no run ${name}`);
    return found;
  };
  const share = (run: Measured) => keptOf(run) / run.raw;
  const small = of('10 calls');
  const fixed = small.tape + small.score;
  const target = (name: string) => ({
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
};
