import type {
  LaneScheduler,
  PendingEffect,
  SchedulerFactory,
  SchedulerView,
} from '../conductor/scheduler.ts';
import { asData, outcomeDifferences, requestDifference } from '../divergence/compare.ts';
import { createExplain, type Explain } from '../divergence/explain.ts';
import type { EffectOutcome } from '../effect.ts';
import {
  indexTapes,
  type RecordedEntry,
  type Recording,
  type Tapes,
  type Witness,
} from '../recording/recording.ts';
import type { EntryPlace } from '../tracer.ts';

export interface ReplaySchedulerOptions {
  readonly recording: Recording;
  /** `sessions` performs `real` effects and compares them; `tape` performs only `inside` effects. */
  readonly fidelity: 'sessions' | 'tape';
  /** Converts data of this run to the form that a recording has. Must be idempotent. */
  readonly normalise: (value: unknown) => unknown;
  /** Converts a recorded answer to the form that a lane of this run expects. */
  readonly expand: (value: unknown) => unknown;
  /** Returns `file:line` of an entry on its tape, for messages. */
  readonly where?: (entry: RecordedEntry) => string | undefined;
  /** Command that records the case again, for messages. */
  readonly rerecord?: string;
  /** Folder that source files in messages are relative to. */
  readonly sourceRoot?: string;
}

/**
 * A scheduler that replays a recording: all entries in the order of the score, and each lane in the order of its tape.
 * Throws REPLAY_DIVERGED at the first difference.
 */
export function replayScheduler(options: ReplaySchedulerOptions): SchedulerFactory<LaneScheduler> {
  const tapes = indexTapes(options.recording);
  return view => new ReplayScheduler(options, tapes, view);
}

class ReplayScheduler implements LaneScheduler {
  readonly #options: ReplaySchedulerOptions;
  readonly #tapes: Tapes;
  readonly #view: SchedulerView;
  readonly #explain: Explain;

  constructor(options: ReplaySchedulerOptions, tapes: Tapes, view: SchedulerView) {
    this.#options = options;
    this.#tapes = tapes;
    this.#view = view;
    const { where, rerecord, sourceRoot } = options;
    this.#explain = createExplain({ tapes, view, where, rerecord, sourceRoot });
  }

  next(): PendingEffect {
    const recorded = this.#tapes.score[this.#view.granted];
    const pending = recorded && this.#view.pendingOf(recorded.lane);
    if (!pending) throw this.#misfit() ?? this.#absence(recorded);
    const misfit = this.#misfitOf(pending, recorded);
    if (misfit) throw misfit;
    const obstacle = this.#view.obstacleOf(pending);
    if (!obstacle) return pending;
    throw (
      this.#misfit() ??
      (this.#canContinue() ? this.#explain.stuck(pending, obstacle) : this.#explain.deadlock())
    );
  }

  performs({ effect: { answer = 'real' } }: PendingEffect): boolean {
    return answer === 'inside' || (answer === 'real' && this.#options.fidelity === 'sessions');
  }

  canEnd(pending: PendingEffect): boolean {
    if (this.#tapes.of(pending.lane.name)[pending.i]?.op !== pending.op) return false;
    // No other lane runs while it is performed, so an effect whose wait is not over would hang.
    return !this.performs(pending) || pending.effect.awaits?.isOver(pending.args) !== false;
  }

  answerOf(pending: PendingEffect, { n }: EntryPlace): EffectOutcome | 'perform' | 'cut off' {
    const recorded = this.#tapes.score[n];
    if (!recorded?.outcome) return 'cut off';
    if (this.performs(pending)) return 'perform';
    const { outcome } = recorded;
    const isCancelled = pending.isCancelling || isCancelledWait(pending, outcome);
    if (isCancelled !== (outcome.kind === 'cancelled')) {
      const now = isCancelled ? 'cancelled' : 'not cancelled';
      throw this.#explain.otherAnswer(pending, recorded, [`end: recorded ${outcome.kind}, now ${now}`]);
    }
    return this.#expanded(outcome);
  }

  judge(pending: PendingEffect, { n }: EntryPlace, outcome: EffectOutcome): EffectOutcome {
    const recorded = this.#tapes.score[n];
    if (!recorded?.outcome) return outcome;
    if (isCancelledWait(pending, recorded.outcome)) return recorded.outcome;
    const { normalise } = this.#options;
    const difference = outcomeDifferences(pending, recorded.outcome, outcome, normalise);
    if (difference.length > 0) throw this.#explain.otherAnswer(pending, recorded, difference);
    return outcome;
  }

  laneEnded(lane: string, entries: number): void {
    if (entries < this.#tapes.of(lane).length) throw this.#explain.missing(lane, entries, 'ended');
  }

  finished(witness: Witness): void {
    if (this.#view.granted < this.#tapes.score.length) throw this.#explain.leftOver();
    const { witness: recorded } = this.#options.recording;
    const isLess =
      witness.mostOpen < recorded.mostOpen ||
      witness.mostInFlight < recorded.mostInFlight ||
      witness.switches < recorded.switches;
    if (isLess) throw this.#explain.lessAtOnce(recorded, witness);
  }

  /** Explains how the request of a lane differs from its tape. */
  #misfitOf(pending: PendingEffect, recorded: RecordedEntry): Error | undefined {
    if (pending.op !== recorded.op || pending.i !== recorded.i)
      return this.#explain.otherOrder(pending, recorded);
    if (pending.nextPhase === 'end') return undefined;
    const difference = requestDifference(pending, recorded, this.#options.normalise);
    if (difference) return this.#explain.otherRequest(pending, difference.what, difference.lines);
    if (pending.nextPhase !== 'begin' || pending.isCancelling === (recorded.outcome !== undefined))
      return undefined;
    const [before, now] = pending.isCancelling
      ? ['not cancelled', 'cancelled']
      : ['cancelled', 'not cancelled'];
    return this.#explain.otherAnswer(pending, recorded, [`begin: recorded ${before}, now ${now}`]);
  }

  /**
   * If a lane cannot follow the score, the cause is often another lane that diverged before its turn. Explains the
   * difference of the lane whose turn would have come first.
   */
  #misfit(): Error | undefined {
    let first: { readonly n: number; readonly misfit: Error } | undefined;
    for (const status of this.#view.statuses()) {
      if (status.kind !== 'parked') continue;
      const { pending, obstacle } = status;
      const recorded = this.#tapes.of(pending.lane.name)[pending.i];
      const n = recorded?.n ?? Number.POSITIVE_INFINITY;
      if (first && first.n <= n) continue;
      const misfit = recorded
        ? this.#misfitOf(pending, recorded)
        : obstacle
          ? undefined
          : this.#explain.extra(pending);
      if (misfit) first = { n, misfit };
    }
    return first?.misfit;
  }

  #absence(recorded: RecordedEntry | undefined): Error {
    if (!recorded) return this.#explain.deadlock();
    if (this.#view.isAlive(recorded.lane)) return this.#explain.elsewhere(recorded);
    return recorded.i === 0
      ? this.#explain.neverStarted(recorded)
      : this.#explain.missing(recorded.lane, recorded.i, 'was abandoned');
  }

  #canContinue(): boolean {
    return this.#view.statuses().some(status => status.kind === 'parked' && !status.obstacle);
  }

  /** Returns a copy, because the lane may change its answer and must not change the recording. */
  #expanded(outcome: EffectOutcome): EffectOutcome {
    const { expand } = this.#options;
    switch (outcome.kind) {
      case 'ok':
        return { kind: 'ok', value: expand(asData(outcome.value)) };
      case 'failed':
        return { kind: 'failed', error: expand(asData(outcome.error)) as typeof outcome.error };
      case 'cancelled':
        return outcome;
    }
  }
}

/**
 * Whether a performed wait was recorded as cancelled: its lane was cancelled before the wait ended. In a replay the
 * wait ends before the cancel is granted, so only the tape knows.
 */
const isCancelledWait = ({ effect }: PendingEffect, recorded: EffectOutcome): boolean =>
  recorded.kind === 'cancelled' && effect.span === 'short' && effect.enabled !== undefined && !effect.cleanup;
