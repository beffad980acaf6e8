import { formatDuration } from '../../core/index.ts';
import { clockLane, type Move, switchesIn } from '../../effects/explore/index.ts';
import { conflicts, type Keys } from '../../effects/index.ts';
import { topLane } from '../../effects/recording/index.ts';
import { count, type LaneRow, laneDiagram } from '../../terminal/index.ts';
import {
  type EndedBy,
  type Exploration,
  type ExplorationProgress,
  type Failure,
  type Faults,
  shareOf,
} from './contract.ts';
import { allSteps } from './crashes.ts';

/** Returns the progress in one line. */
export function progressLine({
  on,
  schedules,
  elapsedMs,
  classes,
  pairs,
  crashPoints,
}: ExplorationProgress): string {
  const rate = elapsedMs > 0 ? (schedules / elapsedMs) * 1000 : 0;
  return [
    `${on === 'git' ? 'on git' : 'in memory'}: ${count(schedules, 'schedule')}`,
    `${rate < 10 ? rate.toFixed(1) : Math.round(rate)}/s`,
    ...(crashPoints?.of === undefined ? [] : [`crash points ${crashPoints.tried} of ${crashPoints.of}`]),
    `${classes} different`,
    `${pairs.inBothOrders} of ${pairs.seen} conflicting pairs in both orders`,
  ].join(', ');
}

/** Describes what was tried, and what was not. */
export function summaryLines(explored: Exploration): readonly string[] {
  const { isComplete, alike: symmetric, inconclusive, doubt, counterfactual, failure, elapsedMs } = explored;
  const how = failure
    ? 'stopped at the first failure'
    : isComplete
      ? 'complete: every order of conflicting effects was played, with time passing only while all commands wait'
      : 'sampled: not every schedule was played';
  const { givenUp } = explored;
  return [
    `${progressLine(explored)}, in ${formatDuration(Math.round(elapsedMs))}`,
    how,
    ...(isComplete && !failure
      ? symmetric.map(
          steps => `${steps.join(', ')} are symmetric: schedules that only swap them were not played`,
        )
      : []),
    ...crashLines(explored),
    ...(counterfactual > 0
      ? [`${counterfactual} counterfactual: a recorded session was replayed on another base commit or prompt`]
      : []),
    ...(inconclusive > 0
      ? [`${inconclusive} inconclusive (${Math.round(100 * shareOf(explored))} %): ${doubt ?? ''}`]
      : []),
    ...(givenUp
      ? [
          `stopped trying other schedules after ${givenUp.schedules}: ${givenUp.inconclusive} of them were inconclusive`,
        ]
      : []),
    ...(explored.isComparedWithOrders
      ? []
      : [
          'outcomes were not compared with running the commands one after another, because not every such order passes',
        ]),
  ];
}

/** Says whether every crash point of the recorded schedule was tried, and if not, why. */
function crashLines({ crashPoints, endedBy }: Exploration): readonly string[] {
  if (!crashPoints) return [];
  const { tried, of, inconclusive, otherEnds } = crashPoints;
  const exceptions = [
    ...(inconclusive > 0 ? [`${inconclusive} inconclusive`] : []),
    ...(otherEnds > 0 ? [`${otherEnds} with the outcome of another schedule`] : []),
  ];
  const details = exceptions.length > 0 ? ` (${exceptions.join(', ')})` : '';
  if (tried === of)
    return [
      `every crash point of the recorded schedule was tried: each command, and all of them together, killed after each effect${details}`,
    ];
  const why = endedBy === undefined ? '' : `: ${outcomeWords[endedBy]}`;
  return [`not every crash point of the recorded schedule was tried${details}${why}`];
}

const outcomeWords: Readonly<Record<EndedBy, string>> = {
  failure: 'a schedule failed first',
  interrupt: 'interrupted',
  schedules: 'reached the maximum number of schedules',
  time: 'reached the time limit',
};

/** Describes a failure, draws its schedule, and says how to replay it. */
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
    `found by ${attempt.by}, seed ${attempt.seed}; ${switches === 1 ? '1 switch' : `${switches} switches`} between commands`,
    `replay it: ${replay}`,
  ];
}

const mostColumns = 100;

/** A schedule to draw. */
export interface ShownSchedule {
  readonly trace: readonly Move[];
  /** Moves that lanes wait for at the end. */
  readonly waits?: readonly Move[];
  readonly adversity: Faults;
}

/** Draws the moves that touch state shared by several commands, in order. */
export const diagramOf = (shown: ShownSchedule, columns: number): readonly string[] =>
  laneDiagram(rowsOf(shown), { columns: Math.min(columns, mostColumns) });

/**
 * Number of switches from one command to another, counting only moves that touch shared state. Time passing does not
 * count, nor do waking up, reading the clock and heartbeats.
 */
export const switchesBetweenSteps = (trace: readonly Move[], waits: readonly Move[]): number =>
  switchesIn(
    sharedIn(trace, [...trace, ...waits]).filter(({ lane }) => lane !== clockLane),
    topLane,
  );

/** Returns the moves that conflict with a move of another command. */
const sharedIn = (moves: readonly Move[], all: readonly Move[]): readonly Move[] => {
  const others = all.filter(({ isUpkeep }) => !isUpkeep);
  return moves.filter(
    move =>
      move.lane === clockLane ||
      (!move.isUpkeep &&
        others.some(
          other =>
            topLane(other.lane) !== topLane(move.lane) &&
            conflicts(describeMove(move.keys), describeMove(other.keys)),
        )),
  );
};

/** Leaves out the keys of worker status, which has no influence on other commands. */
const describeMove = ({ reads = [], writes = [] }: Keys): Keys => ({
  reads: reads.filter(key => !key.startsWith('worker:')),
  writes: writes.filter(key => !key.startsWith('worker:')),
});

function rowsOf({ trace, waits = [], adversity: { crashes, faults } }: ShownSchedule): readonly LaneRow[] {
  const all = [...trace, ...waits];
  const rows = sharedIn(trace, all).map(
    ({ lane, op }): LaneRow => (lane === clockLane ? timePasses : { lane: topLane(lane), text: nameOf(op) }),
  );
  return [
    ...merged(rows),
    ...sharedIn(waits, all).map(({ lane, op }) => ({ lane: topLane(lane), text: `waits: ${nameOf(op)}` })),
    ...faults.map(({ kind, step, nth }) => ({ lane: step, text: `${kind} fault (point ${nth})` })),
    ...crashes.map(({ step, after }) => ({
      lane: step === allSteps ? (rows[0]?.lane ?? step) : step,
      text: `${step === allSteps ? 'all ' : ''}killed after ${count(after, 'effect')}`,
    })),
  ];
}

const nameOf = (op: string): string => op.replace(/\.end$/, '');

const timePasses: LaneRow = { lane: clockLane, text: 'time passes' };

/** Merges consecutive rows of passing time into one. */
const merged = (rows: readonly LaneRow[]): readonly LaneRow[] =>
  rows.filter(({ lane }, at) => lane !== clockLane || rows[at - 1]?.lane !== clockLane);
