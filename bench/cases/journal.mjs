import { inChild } from '../lib/child.mjs';
import { bytes, count, ms, percent, table } from '../lib/format.mjs';
import { alternate } from '../lib/stats.mjs';

const steps = 1000;

const costOfMedians = ({ plainMs, journalMs }) => journalMs / plainMs - 1;

/** Of the two ways to compare runs with and without a journal. */
const worseCost = result => Math.max(costOfMedians(result), result.costOfPairs);

/** What it costs that every run is written down. */
export function journal({ rounds }) {
  const { chain, fanOut, chainRun, fanOutRun } = alternate(
    {
      chain: () => inChild('journal', 'cost', 'chain', steps, 24),
      fanOut: () => inChild('journal', 'cost', 'fanOut', steps, 24),
      chainRun: () => inChild('journal', 'command', 'chain', steps, 16),
      fanOutRun: () => inChild('journal', 'command', 'fanOut', steps, 16),
    },
    rounds,
  );
  const commandRow = (name, result) => [
    `\`reprise run\`, ${count(steps)} no-op steps ${name}`,
    ms(result.plainMs),
    ms(result.journalMs),
    percent(costOfMedians(result)),
    percent(result.costOfPairs),
    '',
    '',
  ];
  const row = (name, result) => [
    `the library, warm, ${count(steps)} no-op steps ${name}`,
    ms(result.plainMs),
    ms(result.journalMs),
    percent(costOfMedians(result)),
    percent(result.costOfPairs),
    `${count((result.cpuMs / steps) * 1000)} µs`,
    bytes(result.bytes),
  ];
  const most = (what, value, limit) => ({ what, value, most: limit, tolerance: 1.5, show: percent });
  return {
    title: 'The journal of a run',
    body: table(
      [
        '',
        'without a journal',
        'with one',
        'its cost, by these',
        'by neighbouring pairs',
        'work of the processor a step',
        'its size',
      ],
      [
        commandRow('in sequence', chainRun),
        commandRow('at once', fanOutRun),
        row('in sequence', chain),
        row('at once', fanOut),
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
}
