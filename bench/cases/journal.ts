import type { BenchCase } from '../lib/bench-case.ts';
import { inChild } from '../lib/child.ts';
import { bytes, count, ms, percent, table } from '../lib/format.ts';
import { alternate } from '../lib/stats.ts';

const steps = 1000;

/** Times with and without a journal. */
interface Compared {
  readonly plainMs: number;
  readonly journalMs: number;
  readonly costOfPairs: number;
}

const costOfMedians = ({ plainMs, journalMs }: Compared) => journalMs / plainMs - 1;

/** The worse result of the two ways to compare runs with and without a journal. */
const worseCost = (result: Compared) => Math.max(costOfMedians(result), result.costOfPairs);

/** Cost of recording every run in a journal. */
export const journal: BenchCase = ({ rounds }) => {
  const { chain, fanOut, chainRun, fanOutRun } = alternate(
    {
      chain: () => inChild('journal', 'cost', 'chain', steps, 24),
      fanOut: () => inChild('journal', 'cost', 'fanOut', steps, 24),
      chainRun: () => inChild('journal', 'command', 'chain', steps, 16),
      fanOutRun: () => inChild('journal', 'command', 'fanOut', steps, 16),
    },
    rounds,
  );
  const commandRow = (name: string, result: Compared) => [
    `\`reprise run\`, ${count(steps)} no-op steps ${name}`,
    ms(result.plainMs),
    ms(result.journalMs),
    percent(costOfMedians(result)),
    percent(result.costOfPairs),
    '',
    '',
  ];
  const row = (name: string, result: typeof chain) => [
    `the library, warm, ${count(steps)} no-op steps ${name}`,
    ms(result.plainMs),
    ms(result.journalMs),
    percent(costOfMedians(result)),
    percent(result.costOfPairs),
    `${count((result.cpuMs / steps) * 1000)} µs`,
    bytes(result.bytes),
  ];
  const most = (what: string, value: number, limit: number) => ({
    what,
    value,
    most: limit,
    tolerance: 1.5,
    show: percent,
  });
  return {
    title: 'The journal of a run',
    body: table(
      [
        '',
        'without a journal',
        'with one',
        'cost, by medians',
        'cost, by adjacent pairs',
        'CPU time per step',
        'size',
      ],
      [
        commandRow('in sequence', chainRun),
        commandRow('in parallel', fanOutRun),
        row('in sequence', chain),
        row('in parallel', fanOut),
      ],
    ),
    targets: [
      most(
        'the journal costs at most 10 % of `reprise run` with 1,000 no-op steps',
        worseCost(chainRun),
        0.1,
      ),
      most('the journal costs at most 10 % of 1,000 no-op steps in a warm library', worseCost(chain), 0.1),
    ],
  };
};
