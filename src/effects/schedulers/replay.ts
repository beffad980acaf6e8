import type { Asked, LanePlayer, PlayerFactory, View } from '../conductor/scheduler.ts';
import { asData, outcomeDifferences, requestDifference } from '../divergence/compare.ts';
import { createExplain, type Explain } from '../divergence/explain.ts';
import type { Outcome } from '../effect.ts';
import {
  indexTapes,
  type RecordedEntry,
  type Recording,
  type Tapes,
  type Witness,
} from '../recording/recording.ts';
import type { EntryPlace } from '../tracer.ts';

export interface ScorePlayerOptions {
  readonly recording: Recording;
  /** `sessions`: what is real is performed, and compared. `tape`: the tape answers all but what is inside. */
  readonly fidelity: 'sessions' | 'tape';
  /** Makes of data of now what the recording would hold of it. What it made already, it leaves as it is. */
  readonly normalise: (value: unknown) => unknown;
  /** Makes of a recorded answer what a lane of now is to get. */
  readonly expand: (value: unknown) => unknown;
  /** `file:line` of an entry on its tape, for messages. */
  readonly where?: (entry: RecordedEntry) => string | undefined;
  /** What to type to record it again, for messages. */
  readonly rerecord?: string;
  /** Source files are named below this folder in messages. */
  readonly sourceRoot?: string;
}

/** Replays a recording: the order of the score, and each lane strictly in the sequence of its tape. */
export function scorePlayer(options: ScorePlayerOptions): PlayerFactory<LanePlayer> {
  const tapes = indexTapes(options.recording);
  return view => new ScorePlayer(options, tapes, view);
}

class ScorePlayer implements LanePlayer {
  readonly #options: ScorePlayerOptions;
  readonly #tapes: Tapes;
  readonly #view: View;
  readonly #explain: Explain;

  constructor(options: ScorePlayerOptions, tapes: Tapes, view: View) {
    this.#options = options;
    this.#tapes = tapes;
    this.#view = view;
    const { where, rerecord, sourceRoot } = options;
    this.#explain = createExplain({ tapes, view, where, rerecord, sourceRoot });
  }

  next(): Asked {
    const recorded = this.#tapes.score[this.#view.granted];
    const asked = recorded && this.#view.askedBy(recorded.lane);
    if (!asked) throw this.#misfit() ?? this.#absence(recorded);
    const misfit = this.#misfitOf(asked, recorded);
    if (misfit) throw misfit;
    const obstacle = this.#view.obstacleOf(asked);
    if (!obstacle) return asked;
    throw (
      this.#misfit() ?? (this.#canAnyGoOn() ? this.#explain.stuck(asked, obstacle) : this.#explain.deadlock())
    );
  }

  performs({ effect: { answer = 'real' } }: Asked): boolean {
    return answer === 'inside' || (answer === 'real' && this.#options.fidelity === 'sessions');
  }

  canEnd(asked: Asked): boolean {
    if (this.#tapes.of(asked.lane.name)[asked.i]?.op !== asked.op) return false;
    // Nobody else goes on while it is performed, so that it would wait for ever.
    return !this.performs(asked) || asked.effect.awaits?.isOver(asked.args) !== false;
  }

  answerOf(asked: Asked, { n }: EntryPlace): Outcome | 'perform' | 'cut off' {
    const recorded = this.#tapes.score[n];
    if (!recorded?.outcome) return 'cut off';
    if (this.performs(asked)) return 'perform';
    const { outcome } = recorded;
    const isCancelled = asked.isDoomed || isCancelledWait(asked, outcome);
    if (isCancelled !== (outcome.kind === 'cancelled')) {
      const now = isCancelled ? 'cancelled' : 'not cancelled';
      throw this.#explain.otherAnswer(asked, recorded, [`end: recorded ${outcome.kind}, now ${now}`]);
    }
    return this.#expanded(outcome);
  }

  judge(asked: Asked, { n }: EntryPlace, outcome: Outcome): Outcome {
    const recorded = this.#tapes.score[n];
    if (!recorded?.outcome) return outcome;
    if (isCancelledWait(asked, recorded.outcome)) return recorded.outcome;
    const { normalise } = this.#options;
    const difference = outcomeDifferences(asked, recorded.outcome, outcome, normalise);
    if (difference.length > 0) throw this.#explain.otherAnswer(asked, recorded, difference);
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

  /** Why what the lane asks for is not what is on its tape. */
  #misfitOf(asked: Asked, recorded: RecordedEntry): Error | undefined {
    if (asked.op !== recorded.op || asked.i !== recorded.i) return this.#explain.otherOrder(asked, recorded);
    if (asked.nextPhase === 'end') return undefined;
    const difference = requestDifference(asked, recorded, this.#options.normalise);
    if (difference) return this.#explain.otherRequest(asked, difference.what, difference.lines);
    if (asked.nextPhase !== 'begin' || asked.isDoomed === (recorded.outcome !== undefined)) return undefined;
    const [before, now] = asked.isDoomed ? ['not cancelled', 'cancelled'] : ['cancelled', 'not cancelled'];
    return this.#explain.otherAnswer(asked, recorded, [`begin: recorded ${before}, now ${now}`]);
  }

  /**
   * When a lane cannot do what the score says, the reason is often another one that went astray before its turn: of
   * those the one whose turn would have come first.
   */
  #misfit(): Error | undefined {
    let first: { readonly n: number; readonly misfit: Error } | undefined;
    for (const standing of this.#view.standings()) {
      if (standing.kind !== 'parked') continue;
      const { asked, obstacle } = standing;
      const recorded = this.#tapes.of(asked.lane.name)[asked.i];
      const n = recorded?.n ?? Number.POSITIVE_INFINITY;
      if (first && first.n <= n) continue;
      const misfit = recorded
        ? this.#misfitOf(asked, recorded)
        : obstacle
          ? undefined
          : this.#explain.extra(asked);
      if (misfit) first = { n, misfit };
    }
    return first?.misfit;
  }

  #absence(recorded: RecordedEntry | undefined): Error {
    if (!recorded) return this.#explain.deadlock();
    if (this.#view.isAlive(recorded.lane)) return this.#explain.elsewhere(recorded);
    return recorded.i === 0
      ? this.#explain.neverStarted(recorded)
      : this.#explain.missing(recorded.lane, recorded.i, 'was left behind');
  }

  #canAnyGoOn(): boolean {
    return this.#view.standings().some(standing => standing.kind === 'parked' && !standing.obstacle);
  }

  /** A copy: what a lane does to its answer must not reach the recording. */
  #expanded(outcome: Outcome): Outcome {
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
 * A wait that was performed, and whose lane was cancelled before it had ended. Here it ends before the cancel is
 * granted, so that only the tape knows.
 */
const isCancelledWait = ({ effect }: Asked, recorded: Outcome): boolean =>
  recorded.kind === 'cancelled' && effect.span === 'short' && effect.enabled !== undefined && !effect.cleanup;
