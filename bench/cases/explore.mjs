import { inChild } from '../lib/child.mjs';
import { count, rate, table } from '../lib/format.mjs';
import { alternate } from '../lib/stats.mjs';

const schedules = 5_000;

const wholeCases = [
  { who: 'two workers', name: 'workers/two_once', on: 'memory', mostMs: 1_000 },
  { who: 'three workers', name: 'workers/three_once', on: 'memory', mostMs: 10_000 },
  { who: 'two workers', name: 'workers/two_once', on: 'git', mostMs: 10_000 },
  { who: 'three workers', name: 'workers/three_once', on: 'git', mostMs: 60_000 },
];

const where = { memory: 'in memory', git: 'on git' };
const seconds = value => `${(value / 1000).toFixed(1)} s`;

/** Given up where it takes much longer than it may. */
const everyOrder = ({ name, on, mostMs }) =>
  inChild('explore-cases', 'every-order', name, on, Math.max(mostMs, 60_000));

/** What the git commands of as many schedules take when they are run one after another. */
function gitAlone({ name, mostMs }, { schedules: played }) {
  const { gitMs, commands, schedules: measured } = inChild('explore-cases', 'git-alone', name, 2 * mostMs);
  return { gitMs: (gitMs / measured) * played, commands: commands / measured };
}

const measure = each => {
  const explored = everyOrder(each);
  return { ...each, ...explored, ...(each.on === 'git' ? gitAlone(each, explored) : {}) };
};

const times = value => `${value.toFixed(2)} times`;

const caseRow = each => [
  `**Reprise**, ${each.who}, ${where[each.on]}`,
  `${count(each.schedules)}${each.isComplete ? ', all' : ', and not all'}`,
  seconds(each.ms),
  seconds(each.warmMs),
  rate(each.schedules, each.warmMs),
  rate(each.entries, each.warmMs),
  ...(each.on === 'git' ? gitColumns(each) : ['', '', '']),
];

const gitColumns = ({ ms, warmMs, gitMs, commands }) => [
  count(commands),
  seconds(gitMs),
  `${times(ms / gitMs)}, ${times(warmMs / gitMs)}`,
];

/** Three lanes in memory, in many orders: drawn by chance, and each class of orders once. */
export function explore({ rounds }) {
  const { random, dpor } = alternate(
    {
      random: () => inChild('explore', 'in-memory', 'random', schedules),
      dpor: () => inChild('explore', 'in-memory', 'dpor', schedules),
    },
    rounds,
  );
  const row = (name, { entries, schedules: performed, ms, coldMs }) => [
    `**Reprise**, ${name}, ${count(performed)} schedules`,
    rate(entries, ms),
    rate(performed, ms),
    rate(entries, coldMs),
  ];
  const workers = wholeCases.map(measure);
  return {
    title: 'Exploring orders',
    body: [
      table(
        ['', 'entries, warm', 'schedules, warm', 'entries, in a fresh process'],
        [row('drawn by chance', random), row('all that differ', dpor)],
      ),
      '',
      'Whole cases, every order that differs and each of the steps one after another, once the case is prepared: in a process that has done nothing before, and once more in the same one. Beside them, the git commands of as many orders: each from its start by a small shell to its end, one after another, in a run of their own.',
      '',
      table(
        [
          '',
          'orders',
          'time, fresh',
          'time, warm',
          'schedules, warm',
          'entries, warm',
          'git commands an order',
          'these alone',
          'ratio, fresh and warm',
        ],
        workers.map(caseRow),
      ),
    ].join('\n'),
    targets: [
      ...workers.map(({ who, on, isComplete, ms: taken, mostMs }) => ({
        what: `all orders of ${who} ${where[on]} are explored within ${seconds(mostMs)}`,
        value: isComplete ? taken : Number.POSITIVE_INFINITY,
        most: mostMs,
        tolerance: 5,
        show: value => (Number.isFinite(value) ? seconds(value) : 'not complete'),
      })),
      ...workers
        .filter(({ on, isComplete }) => on === 'git' && isComplete)
        .map(({ who, warmMs, gitMs }) => ({
          what: `exploring ${who} on git takes 1.3 times what its git commands take by themselves, warm`,
          value: warmMs / gitMs,
          most: 1.3,
          tolerance: 1.5,
          show: times,
        })),
      {
        what: '150,000 entries/s are explored in memory',
        value: random.entries / random.ms,
        least: 150,
        tolerance: 0.5,
        show: value => rate(value, 1),
      },
    ],
  };
}
