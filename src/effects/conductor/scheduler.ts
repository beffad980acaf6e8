import type { Origin } from '../divergence/explain.ts';
import type { EffectOutcome } from '../effect.ts';
import type { Witness } from '../recording/recording.ts';
import type { EntryPlace, Phase, TracedRequest } from '../tracer.ts';

/** Origin of a lane: opened by the runner, opened inside another lane, or forked from one. */
export type Birth = 'top' | 'inner' | 'forked';

export interface PendingLane {
  readonly name: string;
  readonly birth: Birth;
  readonly parent: PendingLane | undefined;
}

/** The next entry of a lane, waiting to be granted: a short effect, or the start or end of a long one. */
export interface PendingEffect extends TracedRequest {
  readonly lane: PendingLane;
  /** Name as on tapes: the name of the effect, with `.begin` or `.end` for a long one. */
  readonly op: string;
  /** Position that it would have within its lane, from 0. */
  readonly i: number;
  readonly nextPhase: Phase;
  /** Whether it ends as cancelled: without being performed, or, if it has begun, regardless of its result. */
  readonly isCancelling: boolean;
  readonly origin: Origin;
}

/** Reason why an entry cannot be granted now. */
export type Obstacle =
  | { readonly kind: 'condition' }
  | { readonly kind: 'keys'; readonly key: string; readonly holders: readonly string[] }
  | { readonly kind: 'no answer' };

/** Status of a lane. */
export type LaneStatus =
  | {
      readonly kind: 'parked';
      readonly lane: string;
      readonly pending: PendingEffect;
      readonly obstacle?: Obstacle;
    }
  | { readonly kind: 'granted'; readonly lane: string; readonly op: string }
  | { readonly kind: 'waits for inner lanes'; readonly lane: string }
  | { readonly kind: 'runs'; readonly lane: string };

/** A lane that waits to be granted an effect. */
export type ParkedLane = Extract<LaneStatus, { kind: 'parked' }>;

/** The lanes as a scheduler sees them. */
export interface SchedulerView {
  /** Number of entries granted so far, which is the position of the next one. */
  readonly granted: number;
  /** Returns the pending effect of a lane. */
  pendingOf(lane: string): PendingEffect | undefined;
  /** Returns the pending effects of all lanes, sorted by lane. */
  pending(): readonly PendingEffect[];
  isAlive(lane: string): boolean;
  obstacleOf(pending: PendingEffect): Obstacle | undefined;
  /** Returns the status of all live lanes, sorted by name, so that nothing depends on the order of arrival. */
  statuses(): readonly LaneStatus[];
}

/** An event outside all lanes, such as the crash of one. */
export type Happening = () => void | Promise<void>;

/**
 * Decides for the conductor which lane continues, and with which answer. An error thrown by a method stops the world;
 * no lane can catch it.
 */
export interface Scheduler {
  /**
   * Called when no lane runs and some wait. Returns a pending effect without an obstacle, or an event outside all lanes,
   * after which it is called again.
   */
  next(): PendingEffect | Happening;
  /** Whether the effect is performed. If not, `askUntilValid` returns its answer, and its `enabled` condition is ignored. */
  performs(pending: PendingEffect): boolean;
  /** Whether a long effect that has begun can end. */
  canEnd(pending: PendingEffect): boolean;
  /** Returns the answer of an effect that is not performed. With `cut off`, a crash froze the lane here for good. */
  answerOf(pending: PendingEffect, position: EntryPlace): EffectOutcome | 'perform' | 'cut off';
  /** Checks the outcome of a performed or cancelled effect, and returns the outcome for the lane. */
  judge(pending: PendingEffect, position: EntryPlace, outcome: EffectOutcome): EffectOutcome;
  laneEnded(lane: string, entries: number): void;
  /** Called when all lanes have ended. */
  finished(witness: Witness): void;
}

/** A scheduler that never causes events outside lanes. */
export interface LaneScheduler extends Scheduler {
  next(): PendingEffect;
}

/** Creates a scheduler for one conducted world. */
export type SchedulerFactory<Of extends Scheduler = Scheduler> = (view: SchedulerView) => Of;

const outside: ReadonlySet<string> = new Set(['keyboard.interrupt', 'inbox.next']);

/** Whether the effect waits for a person or another process, which a conducted world does not have. */
export const isOutside = ({ effect }: PendingEffect): boolean =>
  outside.has(effect.name) && effect.awaits === undefined;

/** Whether a long effect that has begun may end, if every effect is performed. */
export function canEndByItself(pending: PendingEffect): boolean {
  const { effect, args } = pending;
  if (effect.awaits) return effect.awaits.isOver(args);
  if (effect.name === 'keyboard.interrupt') return (args as AbortSignal).aborted;
  return !isOutside(pending);
}
