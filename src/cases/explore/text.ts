import { formatDuration } from '../../core/time.ts';
import { conflicts, type Keys } from '../../effects/effect.ts';
import { clockLane, type Move, switchesIn } from '../../effects/explore/schedule.ts';
import { topLane } from '../../effects/recording/recording.ts';
import { type LaneRow, laneDiagram } from '../../terminal/lane-diagram.ts';
import { count } from '../../terminal/text.ts';
import {
  type Adversity,
  type EndedBy,
  type Exploration,
  type Failure,
  type Progress,
  shareOf,
} from './contract.ts';
import { everybody } from './crashes.ts';

/** How far it has come, in one line. */
export function progressLine({ on, schedules, elapsedMs, classes, pairs, crashPoints }: Progress): string {
  const rate = elapsedMs > 0 ? (schedules / elapsedMs) * 1000 : 0;
  return [
    `${on === 'git' ? 'on git' : 'in memory'}: ${count(schedules, 'schedule')}`,
    `${rate < 10 ? rate.toFixed(1) : Math.round(rate)}/s`,
    ...(crashPoints?.of === undefined ? [] : [`crash points ${crashPoints.tried} of ${crashPoints.of}`]),
    `${classes} different`,
    `${pairs.inBothOrders} of ${pairs.seen} pairs in both orders`,
  ].join(', ');
}

/** What was shown, and what was not. */
export function summaryLines(explored: Exploration): readonly string[] {
  const { isComplete, alike, inconclusive, doubt, counterfactual, failure, elapsedMs } = explored;
  const how = failure
    ? 'stopped at the first failure'
    : isComplete
      ? 'complete: every order of what conflicts, while time stands still unless all wait'
      : 'sampled: there are orders that were not played';
  const { givenUp } = explored;
  return [
    `${progressLine(explored)}, in ${formatDuration(Math.round(elapsedMs))}`,
    how,
    ...(isComplete && !failure
      ? alike.map(steps => `${steps.join(', ')} are alike: which of them is which was not tried out`)
      : []),
    ...crashLines(explored),
    ...(counterfactual > 0
      ? [`${counterfactual} counterfactual: a session was told on another base, or to another prompt`]
      : []),
    ...(inconclusive > 0
      ? [`${inconclusive} inconclusive (${Math.round(100 * shareOf(explored))} %): ${doubt ?? ''}`]
      : []),
    ...(givenUp
      ? [
          `other orders were given up after ${givenUp.schedules}: of ${givenUp.inconclusive} of them nothing can be said`,
        ]
      : []),
    ...(explored.isComparedWithOrders
      ? []
      : ['not compared with one-after-another orders: not all of them come to an end']),
  ];
}

/** Whether every crash of the recorded order was tried, and if not, why. */
function crashLines({ crashPoints, endedBy }: Exploration): readonly string[] {
  if (!crashPoints) return [];
  const { tried, of, inconclusive, otherEnds } = crashPoints;
  const but = [
    ...(inconclusive > 0 ? [`${inconclusive} inconclusive`] : []),
    ...(otherEnds > 0 ? [`${otherEnds} with the end of another order`] : []),
  ];
  const butFor = but.length > 0 ? ` (${but.join(', ')})` : '';
  if (tried === of)
    return [
      `every crash point of the recorded order was tried: each step, and all at once, after each effect${butFor}`,
    ];
  const why = endedBy === undefined ? '' : `: ${endings[endedBy]}`;
  return [`not every crash point of the recorded order was tried${butFor}${why}`];
}

const endings: Readonly<Record<EndedBy, string>> = {
  failure: 'something failed before',
  interrupt: 'it was interrupted before',
  schedules: 'the limit of schedules was reached before',
  time: 'the time was up before',
};

/** What happened, in which order, and how to see it again. */
export function failureLines(
  { what, message, attempt, adversity, trace, waits }: Failure,
  { columns, replay }: { readonly columns: number; readonly replay: string },
): readonly string[] {
  const switches = switchesBetweenSteps(trace, waits);
  return [
    `${what}: ${message}`,
    '',
    ...diagramOf({ trace, waits, adversity }, columns),
    '',
    `found by ${attempt.by}, seed ${attempt.seed}; ${switches === 1 ? '1 switch' : `${switches} switches`} between steps`,
    `see it again: ${replay}`,
  ];
}

const mostColumns = 100;

/** What is shown of a schedule. */
export interface Shown {
  readonly trace: readonly Move[];
  /** What lanes wait for in the end. */
  readonly waits?: readonly Move[];
  readonly adversity: Adversity;
}

/** Who did what to what others touch as well, in its order. */
export const diagramOf = (shown: Shown, columns: number): readonly string[] =>
  laneDiagram(rowsOf(shown), { columns: Math.min(columns, mostColumns) });

/**
 * How often the schedule goes from one step to another, as far as the other can tell. That time passes is no step's doing,
 * and to wake up, look at the clock and give a sign of life is no part of what steps do to each other.
 */
export const switchesBetweenSteps = (trace: readonly Move[], waits: readonly Move[]): number =>
  switchesIn(
    sharedIn(trace, [...trace, ...waits]).filter(({ lane }) => lane !== clockLane),
    topLane,
  );

/** Those moves that touch what another step touches as well. Moves of nobody else's concern are left out. */
const sharedIn = (moves: readonly Move[], all: readonly Move[]): readonly Move[] => {
  const others = all.filter(({ isUpkeep }) => !isUpkeep);
  return moves.filter(
    move =>
      move.lane === clockLane ||
      (!move.isUpkeep &&
        others.some(
          other =>
            topLane(other.lane) !== topLane(move.lane) && conflicts(toldOf(move.keys), toldOf(other.keys)),
        )),
  );
};

/** What workers say of themselves decides nothing. */
const toldOf = ({ reads = [], writes = [] }: Keys): Keys => ({
  reads: reads.filter(key => !key.startsWith('worker:')),
  writes: writes.filter(key => !key.startsWith('worker:')),
});

function rowsOf({ trace, waits = [], adversity: { crashes, faults } }: Shown): readonly LaneRow[] {
  const all = [...trace, ...waits];
  const rows = sharedIn(trace, all).map(
    ({ lane, op }): LaneRow => (lane === clockLane ? timePasses : { lane: topLane(lane), text: nameOf(op) }),
  );
  return [
    ...merged(rows),
    ...sharedIn(waits, all).map(({ lane, op }) => ({ lane: topLane(lane), text: `waits: ${nameOf(op)}` })),
    ...faults.map(({ kind, step, nth }) => ({ lane: step, text: `${kind}, the ${nth}. time it could` })),
    ...crashes.map(({ step, after }) => ({
      lane: step === everybody ? (rows[0]?.lane ?? step) : step,
      text: `${step === everybody ? 'all are' : 'is'} killed after ${after} effects`,
    })),
  ];
}

const nameOf = (op: string): string => op.replace(/\.end$/, '');

const timePasses: LaneRow = { lane: clockLane, text: 'time passes' };

/** Time that passes several times in a row is one row. */
const merged = (rows: readonly LaneRow[]): readonly LaneRow[] =>
  rows.filter(({ lane }, at) => lane !== clockLane || rows[at - 1]?.lane !== clockLane);
