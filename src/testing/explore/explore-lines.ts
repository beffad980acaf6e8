import { clockLane, type Move, switchesIn } from '../../conductor/explore/move.ts';
import { formatDuration } from '../../core/duration.ts';
import { count } from '../../report/count.ts';
import { type LaneRow, laneDiagram } from '../../report/lane-diagram.ts';
import { conflicts, type Keys } from '../../world/effect.ts';
import { topLane } from '../../world/recording.ts';
import type { Adversity } from './attempt.ts';
import { everybody } from './crashes.ts';
import { type Exploration, type Failure, mostDoubt, type Progress } from './explore-case.ts';

/** How far it has come, in one line. */
export function progressLine({ on, schedules, elapsedMs, classes, pairs }: Progress): string {
  const rate = elapsedMs > 0 ? (schedules / elapsedMs) * 1000 : 0;
  return [
    `${on === 'git' ? 'on git' : 'in memory'}: ${count(schedules, 'schedule')}`,
    `${rate < 10 ? rate.toFixed(1) : Math.round(rate)}/s`,
    `${classes} different`,
    `${pairs.inBothOrders} of ${pairs.seen} pairs in both orders`,
  ].join(', ');
}

/** What was shown, and what was not. */
export function summaryLines(explored: Exploration): readonly string[] {
  const { isComplete, schedules, inconclusive, doubt, counterfactual, failure, elapsedMs } = explored;
  const how = failure
    ? 'stopped at the first failure'
    : isComplete
      ? 'complete: every order of what conflicts, while time stands still unless all wait'
      : 'sampled: there are orders that were not played';
  const share = schedules === 0 ? 0 : inconclusive / schedules;
  return [
    `${progressLine(explored)}, in ${formatDuration(Math.round(elapsedMs))}`,
    how,
    ...(counterfactual > 0
      ? [`${counterfactual} counterfactual: a session was told on another base, or to another prompt`]
      : []),
    ...(inconclusive > 0
      ? [
          `${inconclusive} inconclusive (${Math.round(share * 100)} %${share > mostDoubt ? ', too many' : ''}): ${doubt ?? ''}`,
        ]
      : []),
    ...(explored.isComparedWithOrders
      ? []
      : ['not compared with one-after-another orders: not all of them come to an end']),
  ];
}

/** What happened, in which order, and how to see it again. */
export function failureLines(
  { what, message, attempt, adversity, trace }: Failure,
  { columns, replay }: { readonly columns: number; readonly replay: string },
): readonly string[] {
  const switches = switchesBetweenSteps(trace);
  return [
    `${what}: ${message}`,
    '',
    ...diagramOf(trace, adversity, columns),
    '',
    `found by ${attempt.by}, seed ${attempt.seed}; ${switches === 1 ? '1 switch' : `${switches} switches`} between steps`,
    `see it again: ${replay}`,
  ];
}

const mostColumns = 100;

/** Who did what to what others touch as well, in its order. */
export const diagramOf = (trace: readonly Move[], adversity: Adversity, columns: number): readonly string[] =>
  laneDiagram(rowsOf(trace, adversity), { columns: Math.min(columns, mostColumns) });

/** How often the schedule goes from one step to another, as far as the other can tell. */
export const switchesBetweenSteps = (trace: readonly Move[]): number =>
  switchesIn(
    sharedIn(trace).filter(({ lane }) => lane !== clockLane),
    topLane,
  );

/** What steps did to what others touch as well. Moves of nobody else's concern are left out. */
const sharedIn = (all: readonly Move[]): readonly Move[] => {
  const trace = all.filter(({ op }) => !signsOfLife.has(op));
  return trace.filter(
    (move, at) =>
      move.lane === clockLane ||
      trace.some(
        (other, index) =>
          index !== at &&
          topLane(other.lane) !== topLane(move.lane) &&
          conflicts(toldOf(move.keys), toldOf(other.keys)),
      ),
  );
};

const signsOfLife: ReadonlySet<string> = new Set(['store.renew', 'worker.beat']);

/** What workers say of themselves decides nothing. */
const toldOf = ({ reads = [], writes = [] }: Keys): Keys => ({
  reads: reads.filter(key => !key.startsWith('worker:')),
  writes: writes.filter(key => !key.startsWith('worker:')),
});

function rowsOf(trace: readonly Move[], { crashes, faults }: Adversity): readonly LaneRow[] {
  const rows = sharedIn(trace).map(
    ({ lane, op }): LaneRow => ({ lane: topLane(lane), text: op.replace(/\.end$/, '') }),
  );
  return [
    ...merged(rows),
    ...faults.map(({ kind, step, nth }) => ({ lane: step, text: `${kind}, the ${nth}. time it could` })),
    ...crashes.map(({ step, after }) => ({
      lane: step === everybody ? (rows[0]?.lane ?? step) : step,
      text: `${step === everybody ? 'all are' : 'is'} killed after ${after} effects`,
    })),
  ];
}

/** Time that passes several times in a row is one row. */
const merged = (rows: readonly LaneRow[]): readonly LaneRow[] =>
  rows.filter(({ lane }, at) => lane !== clockLane || rows[at - 1]?.lane !== clockLane);
