import { RepriseError } from '../../core/errors.ts';
import type { Asked, LanePlayer, Player, PlayerFactory, Standing, View } from '../conductor/scheduler.ts';
import { conflicts, type Keys, type Outcome } from '../effect.ts';
import { indexTapes, type RecordedEntry, type Tapes, topLane, type Witness } from '../recording/recording.ts';
import type { EntryPlace } from '../tracer.ts';
import { type ScorePlayerOptions, scorePlayer } from './replay.ts';
import { freePlayer, type VirtualTime } from './round-robin.ts';

interface TakeSlot {
  readonly key: string;
  readonly agent: string;
  readonly places: number;
}

/**
 * Which places of agents are taken. Whoever waits for one must not be performed before it is given back: nobody else
 * goes on during a performance, so that it would wait for ever.
 */
class SlotsTaken {
  /** The agent, by the key of whoever has a place of it. */
  readonly #taken = new Map<string, string>();

  note({ effect, args, nextPhase }: Asked, { kind }: Outcome): void {
    if (effect.name === 'agent.release-slot') this.#taken.delete((args as Pick<TakeSlot, 'key'>).key);
    else if (effect.name === 'agent.take-slot' && nextPhase === 'end' && kind === 'ok') {
      const { key, agent } = args as TakeSlot;
      this.#taken.set(key, agent);
    }
  }

  isFreeFor({ effect, args }: Asked): boolean {
    if (effect.name !== 'agent.take-slot') return true;
    const { agent, places } = args as TakeSlot;
    return [...this.#taken.values()].filter(taken => taken === agent).length < places;
  }
}

interface Deed {
  readonly lane: string;
  readonly op: string;
  readonly keys: Keys;
}

interface Misfit {
  readonly error: unknown;
  /** What the pinned lane asked for. */
  readonly asked: Asked | undefined;
  /** The pinned step; `undefined` if all of them have ended. */
  readonly step: string | undefined;
}

/** What a live step has done, to tell why a pinned one does not fit any more. */
class LiveDeeds {
  readonly #live: string;
  readonly #rerecord: string;
  readonly #deeds: Deed[] = [];
  #whyOutOfOrder: string | undefined;

  constructor(live: string, rerecord: string) {
    this.#live = live;
    this.#rerecord = rerecord;
  }

  add({ lane, op, keys }: Asked): void {
    if (keys.writes?.length) this.#deeds.push({ lane: lane.name, op, keys });
  }

  leftOrder(why: string): void {
    this.#whyOutOfOrder = why;
  }

  /** The error of a pinned lane, with what the live step has to do with it. Others are given back. */
  refusal({ error, asked, step }: Misfit): unknown {
    if (!(error instanceof RepriseError)) return error;
    const what =
      step === undefined
        ? `step ${this.#live} cannot be recorded alone`
        : `step ${step} cannot stay as it was recorded, because of what step ${this.#live} does now`;
    const message = [what, ...this.#order(), ...this.#shared(asked), error.message].join('\n');
    return this.#error(message);
  }

  cutOff({ effect, lane }: Asked): RepriseError {
    return this.#error(
      `step ${this.#live} cannot be recorded alone: ${effect.name} of lane ${lane.name} is cut off, and how far it comes is known only if the whole case is played for real`,
    );
  }

  #error(message: string): RepriseError {
    return new RepriseError('REPLAY_DIVERGED', message, { hint: `record the whole case: ${this.#rerecord}` });
  }

  #order(): readonly string[] {
    return this.#whyOutOfOrder === undefined
      ? []
      : [`  ${this.#live} left its order: ${this.#whyOutOfOrder}`];
  }

  #shared(asked: Asked | undefined): readonly string[] {
    const deed = asked && this.#deeds.findLast(({ keys }) => conflicts(keys, asked.keys));
    if (!deed) return [];
    const { reads = [], writes = [] } = asked.keys;
    const both = (deed.keys.writes ?? []).filter(key => meets(key, [...reads, ...writes]));
    const keys = both.length > 0 ? both : (deed.keys.reads ?? []).filter(key => meets(key, writes));
    return [`  both touch ${keys.join(', ')}: before it came ${deed.op} of lane ${deed.lane}`];
  }
}

/** A key may stand for many. */
const meets = (key: string, others: readonly string[]): boolean =>
  conflicts({ writes: [key] }, { writes: others });

interface PinnedPlayerOptions extends Omit<ScorePlayerOptions, 'fidelity' | 'rerecord'> {
  /** The step (a lane at the top) that is performed for real. All others do what was recorded of them. */
  readonly live: string;
  /** Goes on from the moments that are on the tapes. */
  readonly time: VirtualTime;
  /** What to type to record all of it again, for messages. */
  readonly rerecord: string;
}

/**
 * Performs one step for real, while the others are held to their recording. The order is the old one as long as the
 * live step asks for the same effects as then; what it asks them with may be new, and so may the answers. When it asks
 * for something else, its places are given up: from then on it goes first, whenever it can. A pinned lane that does
 * not fit any more ends the performance.
 */
export function pinnedPlayer({ live, time, ...options }: PinnedPlayerOptions): PlayerFactory {
  // How much goes on at once may change with the live step, and is not to be missed.
  const recording = { ...options.recording, witness: nothingAtOnce };
  const pinned = scorePlayer({ ...options, recording, fidelity: 'sessions' });
  const parts = { live, time, tapes: indexTapes(recording), rerecord: options.rerecord };
  return view => new PinnedPlayer({ ...parts, view, pinned });
}

/** What sessions, scripts and functions do. */
const work: ReadonlySet<string> = new Set(['session.next', 'shell.run', 'function.next']);

const nothingAtOnce: Witness = { mostOpen: 0, mostInFlight: 0, switches: 0 };

interface Parts {
  readonly live: string;
  readonly time: VirtualTime;
  readonly tapes: Tapes;
  readonly rerecord: string;
  readonly view: View;
  readonly pinned: PlayerFactory<LanePlayer>;
}

class PinnedPlayer implements Player {
  readonly #parts: Parts;
  readonly #pinned: LanePlayer;
  readonly #free: LanePlayer;
  readonly #freeView: View;
  readonly #deeds: LiveDeeds;
  readonly #slots = new SlotsTaken();
  /** The place in the old order. */
  #at = 0;
  #hasGivenUpPlaces = false;
  #maySleepersWake = false;

  constructor(parts: Parts) {
    this.#parts = parts;
    const { view, live, rerecord } = parts;
    this.#freeView = narrowed(view, {
      granted: () => view.granted,
      shows: standing => this.#isLive(standing.lane) && (this.#maySleepersWake || !isAsleep(standing)),
    });
    const pinnedView = narrowed(view, {
      granted: () => {
        this.#due();
        return this.#at;
      },
      shows: ({ lane }) => !this.#isLive(lane),
    });
    this.#pinned = parts.pinned(pinnedView);
    this.#free = freePlayer(parts.time)(this.#freeView);
    this.#deeds = new LiveDeeds(live, rerecord);
  }

  next(): Asked {
    const due = this.#due();
    if (due && this.#isLive(due.lane)) return this.#nextInPlace(due) ?? this.next();
    if (this.#hasGivenUpPlaces && this.#canLiveGoOn('awake')) return this.#nextOfLive();
    if (!this.#isReady(due) && this.#canLiveGoOn('woken')) {
      this.#giveUpPlaces(
        `it goes on ${due ? `before ${due.op} of lane ${due.lane}` : 'after its recording has ended'}`,
      );
      return this.#nextOfLive();
    }
    const asked = due && this.#parts.view.askedBy(due.lane);
    const next = this.#asRecorded(asked, due, () => (due ? this.#pinned : this.#free).next());
    this.#at++;
    return next;
  }

  performs(asked: Asked): boolean {
    return this.#playerOf(asked).performs(asked);
  }

  canEnd(asked: Asked): boolean {
    return (
      this.#playerOf(asked).canEnd(asked) && (!this.#isLive(asked.lane.name) || this.#slots.isFreeFor(asked))
    );
  }

  answerOf(asked: Asked, place: EntryPlace): Outcome | 'perform' | 'cut off' {
    const recorded = this.#parts.tapes.of(asked.lane.name)[place.i];
    const isLive = this.#isLive(asked.lane.name);
    if (!isLive || !this.#hasGivenUpPlaces) this.#setClock(recorded);
    if (isLive) return this.#knownId(asked, recorded) ?? this.#answerOfLive(asked, place);
    return this.#asRecorded(asked, recorded, () =>
      this.#pinned.answerOf(asked, { ...place, n: recorded?.n ?? this.#at }),
    );
  }

  judge(asked: Asked, place: EntryPlace, outcome: Outcome): Outcome {
    this.#slots.note(asked, outcome);
    if (this.#isLive(asked.lane.name)) return outcome;
    const recorded = this.#parts.tapes.of(asked.lane.name)[place.i];
    return this.#asRecorded(asked, recorded, () =>
      this.#pinned.judge(asked, { ...place, n: recorded?.n ?? this.#at }, outcome),
    );
  }

  laneEnded(lane: string, entries: number): void {
    if (this.#isLive(lane)) return;
    this.#asRecorded(undefined, { lane }, () => this.#pinned.laneEnded(lane, entries));
  }

  finished(witness: Witness): void {
    this.#giveUpPlaces('it has ended');
    this.#asRecorded(undefined, this.#due(), () => this.#pinned.finished(witness));
  }

  #isLive(lane: string): boolean {
    return topLane(lane) === this.#parts.live;
  }

  #playerOf({ lane }: Asked): Player {
    return this.#isLive(lane.name) ? this.#free : this.#pinned;
  }

  /** The run is called what it was: others may have named it since. */
  #knownId({ effect }: Asked, recorded: RecordedEntry | undefined): Outcome | undefined {
    return effect.name === 'ids.new' && recorded?.op === 'ids.new' && !this.#hasGivenUpPlaces
      ? recorded.outcome
      : undefined;
  }

  #answerOfLive(asked: Asked, place: EntryPlace): Outcome | 'perform' | 'cut off' {
    // It would be told to end before it has begun, and what it did until then would be lost.
    if (asked.isDoomed && work.has(asked.effect.name)) throw this.#deeds.cutOff(asked);
    return this.#free.answerOf(asked, place);
  }

  /** What the old order says next. */
  #due(): RecordedEntry | undefined {
    const { score } = this.#parts.tapes;
    let due = score[this.#at];
    while (due && this.#hasGivenUpPlaces && this.#isLive(due.lane)) due = score[++this.#at];
    return due;
  }

  /** The live step at its old place, if it asks for the same effect and can have it. */
  #nextInPlace(due: RecordedEntry): Asked | undefined {
    const { view } = this.#parts;
    const asked = view.askedBy(due.lane);
    if (asked?.op === due.op && asked.i === due.i && !view.obstacleOf(asked)) {
      this.#at++;
      this.#deeds.add(asked);
      return asked;
    }
    const now = asked ? (asked.op === due.op ? 'has to wait' : `asks for ${asked.op}`) : 'asks for nothing';
    this.#giveUpPlaces(`lane ${due.lane} ${now} where ${due.op} was recorded`);
    return undefined;
  }

  #nextOfLive(): Asked {
    const asked = this.#free.next();
    this.#deeds.add(asked);
    return asked;
  }

  #giveUpPlaces(why: string): void {
    if (this.#hasGivenUpPlaces) return;
    this.#hasGivenUpPlaces = true;
    this.#deeds.leftOrder(why);
  }

  #canLiveGoOn(who: 'awake' | 'woken'): boolean {
    this.#maySleepersWake = who === 'woken';
    return this.#freeView.standings().some(standing => standing.kind === 'parked' && !standing.obstacle);
  }

  #isReady(due: RecordedEntry | undefined): boolean {
    const asked = due && this.#parts.view.askedBy(due.lane);
    return asked !== undefined && !this.#parts.view.obstacleOf(asked);
  }

  #setClock(recorded: RecordedEntry | undefined): void {
    if (recorded?.op !== 'clock.now' || recorded.outcome?.kind !== 'ok') return;
    this.#parts.time.advanceTo(Number(recorded.outcome.value));
  }

  #asRecorded<T>(asked: Asked | undefined, at: { readonly lane: string } | undefined, play: () => T): T {
    try {
      return play();
    } catch (error) {
      throw this.#deeds.refusal({ error, asked, step: at && topLane(at.lane) });
    }
  }
}

/** Time passes only when nothing else can go on. */
const isAsleep = (standing: Standing): boolean => {
  if (standing.kind !== 'parked') return false;
  const { effect, nextPhase, isDoomed } = standing.asked;
  return effect.name === 'clock.sleep' && nextPhase === 'end' && !isDoomed;
};

/** The view of whoever plays some of the lanes only. */
const narrowed = (
  view: View,
  { granted, shows }: { readonly granted: () => number; readonly shows: (standing: Standing) => boolean },
): View => ({
  get granted() {
    return granted();
  },
  askedBy: lane => view.askedBy(lane),
  asked: () =>
    view
      .standings()
      .flatMap(standing => (standing.kind === 'parked' && shows(standing) ? [standing.asked] : [])),
  isAlive: lane => view.isAlive(lane),
  obstacleOf: asked => view.obstacleOf(asked),
  standings: () => view.standings().filter(shows),
});
