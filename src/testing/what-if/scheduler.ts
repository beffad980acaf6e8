import { RepriseError } from '../../core/errors.ts';
import type { Asked, Player, PlayerFactory, Standing, View } from '../../effects/conductor/scheduler.ts';
import type { Outcome } from '../../effects/effect.ts';
import {
  indexTapes,
  type RecordedEntry,
  type Recording,
  type Tapes,
  topLane,
} from '../../effects/recording/recording.ts';
import type { EntryPlace } from '../../effects/tracer.ts';
import { unitOf } from '../../engine/state/graph.ts';

/** A piece of the work of a step that a lane asks for. */
export type AskedWork = {
  /** The step of the case. */
  readonly step: string;
  readonly unit: string;
} & (
  | { readonly kind: 'session' | 'function'; readonly key: string }
  | { readonly kind: 'shell'; readonly script: ScriptOfUnit }
  | { readonly kind: 'landing' }
);

interface ScriptOfUnit {
  readonly unit: { readonly step: string; readonly worker?: number | undefined; readonly attempt: number };
  readonly what?: string | undefined;
}

/** `undefined` for everything that is not the work of a step. */
function askedWork({ effect, args, lane }: Pick<Asked, 'effect' | 'args' | 'lane'>): AskedWork | undefined {
  const step = topLane(lane.name);
  switch (effect.name) {
    case 'function.next': {
      const key = String(args);
      return { kind: 'function', step, key, unit: key.slice(key.indexOf(':') + 1) };
    }
    case 'session.next': {
      const { key } = args as { readonly key: string };
      // run:unit:attempt:number, and a unit may have colons too.
      return { kind: 'session', step, key, unit: key.split(':').slice(1, -2).join(':') };
    }
    case 'shell.run':
    case 'shell.clean-up': {
      const script = args as ScriptOfUnit;
      return { kind: 'shell', step, script, unit: unitOf(script.unit.step, script.unit.worker) };
    }
    case 'land.lock': {
      const { unit } = args as ScriptOfUnit;
      return { kind: 'landing', step, unit: unitOf(unit.step, unit.worker) };
    }
    default:
      return undefined;
  }
}

/** How the turns of one function or session ended, in their order, whatever lane they were in. */
type TurnsByKey = ReadonlyMap<string, readonly Outcome[]>;

/** Which function or session, in which step of the case. */
const turnKey = (lane: string, key: string): string => `${topLane(lane)} ${key}`;

/** Of the long effect of that name, by what its arguments say it belongs to. */
function turnsOf(
  entries: readonly RecordedEntry[],
  effect: string,
  keyOf: (args: unknown) => string,
): TurnsByKey {
  const turns = new Map<string, Outcome[]>();
  const under = new Map<string, string>();
  for (const { op, lane, args, outcome } of entries) {
    if (op === `${effect}.begin` && outcome === undefined) under.set(lane, turnKey(lane, keyOf(args)));
    const key = under.get(lane);
    if (op !== `${effect}.end` || key === undefined || !outcome) continue;
    turns.set(key, [...(turns.get(key) ?? []), outcome]);
  }
  return turns;
}

interface GuidedPlayerOptions {
  readonly recording: Recording;
  readonly time: { now(): number; advanceTo(epochMs: number): void };
  /** Makes of a recorded answer what a lane of now is to get. */
  readonly expand: (value: unknown) => unknown;
  /** Whether work that has begun comes to an end without being cancelled, apart from functions. */
  readonly endsByItself: (work: AskedWork) => boolean;
  /** Whether it is to end otherwise than recorded. */
  readonly isForced: (work: AskedWork) => boolean;
  readonly takesMs: (work: AskedWork) => number | undefined;
}

/** Work that nothing brings to an end: it was never recorded, or was interrupted then and is not now. */
export class Stuck extends RepriseError {
  readonly work: readonly AskedWork[];

  constructor(waiting: readonly Asked[]) {
    const lines = waiting.map(({ lane, op }) => `${lane.name} waits at ${op}`);
    super('DEADLOCK', `no lane can go on: ${lines.join('; ')}`);
    this.work = waiting.flatMap(asked => (asked.nextPhase === 'end' ? (askedWork(asked) ?? []) : []));
  }
}

/**
 * Plays as it was recorded for as long as lanes do what they did then, and goes on without the recording where they do
 * not. Time passes only when nothing else can happen.
 */
export const guidedPlayer =
  (options: GuidedPlayerOptions): PlayerFactory =>
  view =>
    new GuidedPlayer(options, view);

/** Answered as then, if the lane is where it was then: otherwise commits and messages would have other names. */
const sameAsThen: ReadonlySet<string> = new Set(['ids.new', 'ids.receipt', 'ids.session', 'workspace.ports']);

/** Nobody is there who could have left a process behind. */
const answers: ReadonlyMap<string, unknown> = new Map<string, unknown>([
  ['clock.sleep', undefined],
  ['function.answer', undefined],
  ['process.end-orphans', 0],
]);

class GuidedPlayer implements Player {
  readonly #options: GuidedPlayerOptions;
  readonly #view: View;
  readonly #tapes: Tapes;
  readonly #functions: TurnsByKey;
  readonly #sessions: TurnsByKey;
  /** How many turns of a function or session have ended. */
  readonly #turns = new Map<string, number>();
  /** When a lane went on last. */
  readonly #lastGrants = new Map<string, number>();
  /** What a lane did last, beside looking at the clock: one that only says that its run is alive, again and again, brings nothing forward. */
  readonly #lastEffects = new Map<string, string>();
  /** When the work of a lane began that takes its time. */
  readonly #began = new Map<string, number>();

  constructor(options: GuidedPlayerOptions, view: View) {
    this.#options = options;
    this.#view = view;
    const { recording } = options;
    this.#tapes = indexTapes(recording);
    this.#functions = turnsOf(recording.entries, 'function.next', String);
    this.#sessions = turnsOf(recording.entries, 'session.next', args => (args as { key: string }).key);
  }

  next(): Asked {
    const waiting = this.#view.standings().filter(isParked);
    const enabled = waiting.map(({ asked }) => asked).filter(asked => !this.#view.obstacleOf(asked));
    const timed = enabled.map(asked => ({ asked, at: this.#wakesAt(asked) }));
    const awake = timed.filter(({ at }) => at === undefined).map(({ asked }) => asked);
    const isHopeless = enabled.every(({ lane }) => this.#lastEffects.get(lane.name) === 'store.renew');
    const next =
      awake.toSorted((a, b) => this.#order(a, b))[0] ?? (isHopeless ? undefined : this.#wakeFirst(timed));
    if (!next) throw new Stuck(waiting.map(({ asked }) => asked));
    this.#lastGrants.set(next.lane.name, this.#view.granted + 1);
    if (!next.effect.name.startsWith('clock.')) this.#lastEffects.set(next.lane.name, next.effect.name);
    if (next.nextPhase === 'begin' && this.#takes(next) !== undefined && !this.#began.has(next.lane.name))
      this.#began.set(next.lane.name, this.#options.time.now());
    return next;
  }

  performs(asked: Asked): boolean {
    return this.#performsAt(asked, asked.i);
  }

  canEnd(asked: Asked): boolean {
    const { effect, args } = asked;
    switch (effect.name) {
      case 'keyboard.interrupt':
        return (args as AbortSignal).aborted;
      case 'inbox.next':
        return false;
    }
    if (effect.awaits?.isOver(args) === false) return false;
    const work = askedWork(asked);
    if (!work || this.#options.isForced(work)) return true;
    if (work.kind === 'function') return this.#turn(this.#functions, asked, work.key)?.kind === 'ok';
    if (this.#options.endsByItself(work)) return true;
    // One that was interrupted had said something before.
    return work.kind === 'session' && this.#turn(this.#sessions, asked, work.key)?.kind === 'ok';
  }

  answerOf(asked: Asked, { i }: EntryPlace): Outcome | 'perform' {
    if (this.#performsAt(asked, i)) return 'perform';
    if (asked.isDoomed) return { kind: 'cancelled' };
    const { effect, args, lane } = asked;
    if (effect.name !== 'function.next') {
      const value = answers.has(effect.name) ? answers.get(effect.name) : this.#then(asked, i);
      return { kind: 'ok', value: this.#options.expand(value) };
    }
    const key = String(args);
    const turn = this.#turn(this.#functions, asked, key);
    this.#count(turnKey(lane.name, key));
    return turn?.kind === 'ok'
      ? { kind: 'ok', value: this.#options.expand(turn.value) }
      : { kind: 'ok', value: { kind: 'ended', end: { kind: 'completed', output: null } } };
  }

  judge(asked: Asked, _place: unknown, outcome: Outcome): Outcome {
    const { effect, args, lane } = asked;
    if (effect.name === 'session.next') this.#count(turnKey(lane.name, (args as { key: string }).key));
    return outcome;
  }

  laneEnded(): void {}

  finished(): void {}

  #order(a: Asked, b: Asked): number {
    const [left, right] = [this.#placeOf(a), this.#placeOf(b)];
    if (left !== right) return left < right ? -1 : 1;
    return (this.#lastGrants.get(a.lane.name) ?? 0) - (this.#lastGrants.get(b.lane.name) ?? 0);
  }

  /** Where it stood in the recorded order. */
  #placeOf(asked: Asked): number {
    const recorded = this.#tapes.of(asked.lane.name)[asked.i];
    return recorded?.op === asked.op ? recorded.n : Number.POSITIVE_INFINITY;
  }

  #performsAt(asked: Asked, i: number): boolean {
    const { name } = asked.effect;
    if (name === 'function.next' || answers.has(name)) return false;
    return !sameAsThen.has(name) || this.#then(asked, i) === undefined;
  }

  /** What the lane was told then, at the same place. */
  #then({ lane, effect }: Asked, i: number): unknown {
    const recorded = this.#tapes.of(lane.name)[i];
    return recorded?.op === effect.name && recorded.outcome?.kind === 'ok'
      ? recorded.outcome.value
      : undefined;
  }

  #turn(turns: TurnsByKey, { lane }: Asked, key: string): Outcome | undefined {
    const name = turnKey(lane.name, key);
    return turns.get(name)?.[this.#turns.get(name) ?? 0];
  }

  #count(name: string): void {
    this.#turns.set(name, (this.#turns.get(name) ?? 0) + 1);
  }

  #takes(asked: Asked): number | undefined {
    const work = askedWork(asked);
    return work && this.#options.takesMs(work);
  }

  /** `undefined`: it need not wait for any moment. */
  #wakesAt(asked: Asked): number | undefined {
    if (asked.isDoomed || asked.nextPhase !== 'end') return undefined;
    if (asked.effect.name === 'clock.sleep') return Number(asked.args);
    const began = this.#began.get(asked.lane.name);
    const ms = began === undefined ? undefined : this.#takes(asked);
    if (began === undefined || ms === undefined) return undefined;
    return this.#options.time.now() < began + ms ? began + ms : undefined;
  }

  #wakeFirst(
    timed: readonly { readonly asked: Asked; readonly at: number | undefined }[],
  ): Asked | undefined {
    const [first] = timed.toSorted((a, b) => (a.at ?? 0) - (b.at ?? 0));
    if (first?.at !== undefined) this.#options.time.advanceTo(first.at);
    return first?.asked;
  }
}

type Parked = Extract<Standing, { kind: 'parked' }>;

const isParked = (standing: Standing): standing is Parked => standing.kind === 'parked';
