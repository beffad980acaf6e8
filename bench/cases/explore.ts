import type { BenchCase } from '../lib/bench-case.ts';
import { inChild } from '../lib/child.ts';
import { count, rate, table } from '../lib/format.ts';
import { alternate } from '../lib/stats.ts';

const schedules = 5_000;

const wholeCases = [
  { who: 'two workers', name: 'workers/two_once', on: 'memory', mostMs: 1_000 },
  { who: 'three workers', name: 'workers/three_once', on: 'memory', mostMs: 10_000 },
  { who: 'two workers', name: 'workers/two_once', on: 'git', mostMs: 10_000 },
  { who: 'three workers', name: 'workers/three_once', on: 'git', mostMs: 60_000 },
] as const;

type WholeCase = (typeof wholeCases)[number];

const where = { memory: 'in memory', git: 'on git' };
const seconds = (value: number) => `${(value / 1000).toFixed(1)} s`;

/** Explores every schedule of a case. Stops if it takes much longer than its target. */
const everyOrder = ({ name, on, mostMs }: WholeCase) =>
  inChild('explore-cases', 'every-order', name, on, Math.max(mostMs, 60_000));

/** Time of the git commands of the same number of schedules, run one after another. */
function gitAlone({ name, mostMs }: WholeCase, played: number) {
  const { gitMs, commands, schedules: measured } = inChild('explore-cases', 'git-alone', name, 2 * mostMs);
  return { gitMs: (gitMs / measured) * played, commands: commands / measured };
}

const measure = (each: WholeCase) => {
  const explored = everyOrder(each);
  return {
    ...each,
    ...explored,
    git: each.on === 'git' ? gitAlone(each, explored.schedules) : undefined,
  };
};

type Measured = ReturnType<typeof measure>;

const times = (value: number) => `${value.toFixed(2)} times`;

const caseRow = (each: Measured) => [
  `**Reprise**, ${each.who}, ${where[each.on]}`,
  `${count(each.schedules)}${each.isComplete ? ', all' : ', not all'}`,
  seconds(each.ms),
  seconds(each.warmMs),
  rate(each.schedules, each.warmMs),
  rate(each.entries, each.warmMs),
  ...gitColumns(each),
];

const gitColumns = ({ ms, warmMs, git }: Measured) =>
  git
    ? [count(git.commands), seconds(git.gitMs), `${times(ms / git.gitMs)}, ${times(warmMs / git.gitMs)}`]
    : ['', '', ''];

/** Three lanes in memory: random schedules, and one schedule of each equivalence class. */
export const explore: BenchCase = ({ rounds }) => {
  const { random, dpor } = alternate(
    {
      random: () => inChild('explore', 'in-memory', 'random', schedules),
      dpor: () => inChild('explore', 'in-memory', 'dpor', schedules),
    },
    rounds,
  );
  const row = (name: string, { entries, schedules: performed, ms, coldMs }: typeof random) => [
    `**Reprise**, ${name}, ${count(performed)} schedules`,
    rate(entries, ms),
    rate(performed, ms),
    rate(entries, coldMs),
  ];
  const workers = wholeCases.map(measure);
  return {
    title: 'Exploring schedules',
    body: [
      table(
        ['', 'entries, warm', 'schedules, warm', 'entries, in a fresh process'],
        [row('random', random), row('all distinct', dpor)],
      ),
      '',
      'Whole cases: every distinct schedule, plus the commands of the case one after another. Preparing the case is not included. Each case is explored in a fresh process, and once more in the same process. For comparison, the last columns show the git commands of the same number of schedules, run one after another from a small shell in a separate run.',
      '',
      table(
        [
          '',
          'schedules',
          'time, fresh',
          'time, warm',
          'schedules/s, warm',
          'entries/s, warm',
          'git commands per schedule',
          'git commands alone',
          'ratio, fresh and warm',
        ],
        workers.map(caseRow),
      ),
    ].join('\n'),
    targets: [
      ...workers.map(({ who, on, isComplete, ms: taken, mostMs }) => ({
        what: `all schedules of ${who} ${where[on]} are explored within ${seconds(mostMs)}`,
        value: isComplete ? taken : Number.POSITIVE_INFINITY,
        most: mostMs,
        tolerance: 5,
        show: (value: number) => (Number.isFinite(value) ? seconds(value) : 'not complete'),
      })),
      ...workers.flatMap(({ who, warmMs, git, isComplete }) =>
        git && isComplete
          ? {
              what: `exploring ${who} on git takes at most 1.3 times as long as its git commands alone, warm`,
              value: warmMs / git.gitMs,
              most: 1.3,
              tolerance: 1.5,
              show: times,
            }
          : [],
      ),
      {
        what: 'at least 150,000 entries/s are explored in memory',
        value: random.entries / random.ms,
        least: 150,
        tolerance: 0.5,
        show: value => rate(value, 1),
      },
    ],
  };
};
