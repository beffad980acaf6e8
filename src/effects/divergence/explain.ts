import { relative } from 'node:path';
import { fileURLToPath } from 'node:url';
import { RepriseError } from '../../core/index.ts';
import type { LaneStatus, Obstacle, PendingEffect, SchedulerView } from '../conductor/scheduler.ts';
import { nearest, type RecordedEntry, type Tapes, topLane, type Witness } from '../recording/recording.ts';

interface ExplainOptions {
  readonly tapes: Tapes;
  readonly view: SchedulerView;
  /** Returns `file:line` of an entry on its tape. */
  readonly where?: ((entry: RecordedEntry) => string | undefined) | undefined;
  /** Command that records the case again. */
  readonly rerecord?: string | undefined;
  /** Folder that source files in messages are relative to. */
  readonly sourceRoot?: string | undefined;
}

/** Number of entries shown before the divergence. */
const shownBefore = 8;

/** Creates the errors for every way in which a replay can differ from its recording. */
export type Explain = ReturnType<typeof createExplain>;

export function createExplain({ tapes, view, where, rerecord, sourceRoot }: ExplainOptions) {
  const { score } = tapes;
  const at = (entry: RecordedEntry): string => {
    const position = where?.(entry);
    return `${entry.lane} ${entry.op}${position === undefined ? '' : `  ${position}`}`;
  };
  const fact = (label: string, ...lines: readonly string[]): ExplanationFact => ({ label, lines });

  const placeOf = (lane: string, i: number): ExplanationFact =>
    fact(
      'at',
      `step ${topLane(lane)}, lane ${lane}, i ${i} of ${tapes.of(lane).length}, n ${view.granted} of ${score.length}`,
    );
  const expected = (entry: RecordedEntry | undefined): ExplanationFact =>
    fact('expected', entry ? at(entry) : 'the end of the score');
  const onTape = ({ lane, i }: { readonly lane: string; readonly i: number }): readonly ExplanationFact[] => {
    const recorded = tapes.of(lane)[i];
    return recorded === score[view.granted]
      ? []
      : [fact('on its tape', recorded ? at(recorded) : 'the end of the tape')];
  };
  const sourceText = ({ origin }: PendingEffect): string => {
    const source = sourceOf(origin, sourceRoot);
    return source === undefined ? '' : `  ${source}`;
  };
  const called = (pending: PendingEffect): ExplanationFact =>
    fact('called', `${pending.lane.name} ${pending.op}${sourceText(pending)}`);
  const describe = (status: LaneStatus): string => {
    if (status.kind === 'granted') return `${status.lane} performs ${status.op}`;
    if (status.kind !== 'parked') return `${status.lane} ${status.kind}`;
    const { lane, pending, obstacle } = status;
    const isOnTape = pending.i < tapes.of(lane).length;
    return `${lane} waits at ${pending.op}${whyOf(obstacle, isOnTape)}`;
  };
  const others = (but?: string): readonly ExplanationFact[] => {
    const lines = view
      .statuses()
      .filter(({ lane }) => lane !== but)
      .map(describe);
    return lines.length > 0 ? [fact('other lanes', ...lines)] : [];
  };
  const before = (n = view.granted): readonly ExplanationFact[] => {
    const from = Math.max(0, n - shownBefore);
    const lines = score.slice(from, n).map(({ n, lane, op }) => `${n} ${lane} ${op}`);
    return lines.length > 0 ? [fact('before that', ...lines)] : [];
  };
  const nearby = ({ lane, op, i }: PendingEffect): readonly ExplanationFact[] => {
    const found = nearest(tapes.of(lane.name), op, i);
    if (!found || found.distance === 0) return [];
    const { entry, distance } = found;
    const side = distance > 0 ? 'later' : 'earlier';
    return [fact('nearest match', `${at(entry)}, i ${entry.i}, ${Math.abs(distance)} ${side}`)];
  };
  const aboutPending = (
    pending: PendingEffect,
    difference: readonly string[] = [],
  ): readonly ExplanationFact[] => [
    placeOf(pending.lane.name, pending.i),
    expected(score[view.granted]),
    ...onTape({ lane: pending.lane.name, i: pending.i }),
    called(pending),
    ...(difference.length > 0 ? [fact('difference', ...difference)] : []),
    ...others(pending.lane.name),
    ...before(),
    ...nearby(pending),
  ];
  const error = (what: string, facts: readonly ExplanationFact[]): RepriseError =>
    diverged({ what, facts, rerecord });

  return {
    missing: (lane: string, entries: number, how: 'ended' | 'was abandoned') => {
      const left = tapes.of(lane).slice(entries);
      const [next] = left;
      return error(`lane ${lane} ${how}, but its tape has ${moreEntries(left.length)}`, [
        placeOf(lane, entries),
        expected(score[view.granted]),
        ...(next && next !== score[view.granted] ? [fact('on its tape', at(next))] : []),
        ...others(),
        ...before(),
      ]);
    },
    extra: (pending: PendingEffect) =>
      error(`lane ${pending.lane.name} calls ${pending.op}, but its tape has ended`, aboutPending(pending)),
    otherOrder: (pending: PendingEffect, recorded: RecordedEntry) =>
      error(
        `lane ${pending.lane.name} calls ${pending.op} where ${recorded.op} was recorded`,
        aboutPending(pending),
      ),
    otherRequest: (pending: PendingEffect, what: 'arguments' | 'keys', difference: readonly string[]) =>
      error(
        `lane ${pending.lane.name} calls ${pending.op} with different ${what} than recorded`,
        aboutPending(pending, difference),
      ),
    otherAnswer: (pending: PendingEffect, recorded: RecordedEntry, difference: readonly string[]) =>
      error(`${recorded.op} of lane ${pending.lane.name} ended differently than recorded`, [
        fact(
          'at',
          `step ${topLane(recorded.lane)}, lane ${recorded.lane}, i ${recorded.i} of ${tapes.of(recorded.lane).length}, n ${recorded.n} of ${score.length}`,
        ),
        expected(recorded),
        fact('called from', sourceOf(pending.origin, sourceRoot) ?? 'unknown'),
        fact('difference', ...difference),
        ...others(pending.lane.name),
        ...before(recorded.n),
      ]),
    neverStarted: (recorded: RecordedEntry) =>
      error(`lane ${recorded.lane} has not started, but it is its turn`, [
        placeOf(recorded.lane, 0),
        expected(recorded),
        ...others(),
        ...before(),
      ]),
    elsewhere: (recorded: RecordedEntry) =>
      error(`lane ${recorded.lane} makes no call where ${recorded.op} was recorded`, [
        placeOf(recorded.lane, recorded.i),
        expected(recorded),
        ...others(),
        ...before(),
      ]),
    stuck: (pending: PendingEffect, obstacle: Obstacle) =>
      error(
        `it is the turn of lane ${pending.lane.name}, but it cannot continue${whyOf(obstacle, true)}`,
        aboutPending(pending),
      ),
    deadlock: () => {
      const waits = view.statuses().flatMap(status => (status.kind === 'parked' ? [status] : []));
      const what = waits.map(({ lane, pending }) => `${lane} waits at ${pending.op}`).join('; ');
      return deadlocked({
        what,
        facts: [
          fact('at', `n ${view.granted} of ${score.length}`),
          expected(score[view.granted]),
          fact('waiting', ...waits.map(wait => `${describe(wait)}${sourceText(wait.pending)}`)),
          ...before(),
        ],
      });
    },
    leftOver: () => {
      const left = score.slice(view.granted);
      const lanes = [...new Set(left.map(({ lane }) => lane))];
      return error(`all lanes have ended, but the score has ${moreEntries(left.length)}`, [
        expected(left[0]),
        fact(
          'not replayed',
          ...lanes.map(lane => `${lane}: ${left.filter(entry => entry.lane === lane).length}`),
        ),
        ...before(),
      ]);
    },
    lessAtOnce: (recorded: Witness, now: Witness) =>
      error('less ran in parallel than was recorded', [
        fact('steps in parallel', `recorded ${recorded.mostOpen}, now ${now.mostOpen}`),
        fact('long effects in parallel', `recorded ${recorded.mostInFlight}, now ${now.mostInFlight}`),
        fact('switches between steps', `recorded ${recorded.switches}, now ${now.switches}`),
      ]),
  };
}

const moreEntries = (count: number): string => `${count} more ${count === 1 ? 'entry' : 'entries'}`;

function whyOf(obstacle: Obstacle | undefined, isOnTape: boolean): string {
  switch (obstacle?.kind) {
    case 'condition':
      return ': its condition is false';
    case 'keys':
      return `: the key ${obstacle.key} is held by ${obstacle.holders.join(', ') || 'no lane'}`;
    case 'no answer':
      return ': its end is not on the tape';
    case undefined:
      return isOnTape ? '' : ': its tape has ended';
  }
}

/** A labelled fact about a divergence, with one or more lines. */
interface ExplanationFact {
  readonly label: string;
  readonly lines: readonly string[];
}

interface Divergence {
  /** The difference in one line. */
  readonly what: string;
  readonly facts?: readonly ExplanationFact[];
  /** Command to run if the change is intended. */
  readonly rerecord?: string | undefined;
}

const diverged = ({ what, facts = [], rerecord }: Divergence): RepriseError =>
  new RepriseError('REPLAY_DIVERGED', [`replay diverged: ${what}`, ...factLines(facts)].join('\n'), {
    hint: rerecord && `if this is intended, record it again: ${rerecord}`,
  });

/** A deadlock is a problem of the program, not of the recording. */
const deadlocked = ({ what, facts = [] }: Divergence): RepriseError =>
  new RepriseError('DEADLOCK', [`no lane can continue: ${what}`, ...factLines(facts)].join('\n'));

/** Formats facts in two columns: labels and lines. */
function factLines(facts: readonly ExplanationFact[]): readonly string[] {
  const width = Math.max(...facts.map(({ label }) => label.length), 0);
  return facts.flatMap(({ label, lines }) =>
    lines.map((line, index) => `  ${(index === 0 ? label : '').padEnd(width)}  ${line}`),
  );
}

type CallerFunction = (...args: never[]) => unknown;

/** Stack frames to keep: the first is the caller, the others help if that one only forwards the call. */
const frames = 4;

/** Source position of a call. Cheap to capture; the stack is formatted only if a message needs it. */
export class Origin {
  declare readonly stack: string;

  /** `above` is the function whose caller is captured. */
  constructor(above: CallerFunction) {
    const { stackTraceLimit } = Error;
    Error.stackTraceLimit = frames;
    Error.captureStackTrace(this, above);
    Error.stackTraceLimit = stackTraceLimit;
  }
}

/** Origin for worlds that never report it: capturing one takes a tenth of the time of an in-memory effect. */
export const unknownOrigin: Origin = { stack: '' };

/** Returns `src/land.ts:88`, relative to `root` if given; undefined if no frame is outside the effects boundary. */
export function sourceOf({ stack }: { readonly stack: string }, root?: string): string | undefined {
  for (const line of stack.split('\n')) {
    const found = /^\s+at (?:.* \()?(?:async )?(.+?):(\d+):\d+\)?$/.exec(line);
    const [, position = '', row] = found ?? [];
    if (!found || position.startsWith('node:') || isBoundary(position)) continue;
    return `${shown(position, root)}:${row}`;
  }
  return undefined;
}

/** Whether the frame belongs to the effects boundary. In a bundle it has no folder, but `above` excludes it there. */
const isBoundary = (position: string): boolean =>
  /\/(src|dist)\/effects\/((conductor|divergence|recording|redact|schedulers)\/)?[^/]+$/.test(position) &&
  !/\.test\.[jt]s$/.test(position);

function shown(position: string, root: string | undefined): string {
  const file = position.startsWith('file:') ? fileURLToPath(position) : position;
  if (root === undefined) return file;
  const below = relative(root, file);
  return below.startsWith('..') ? file : below;
}
