import { RepriseError } from '../../core/index.ts';
import type {
  LaneStatus,
  ParkedLane,
  PendingEffect,
  Scheduler,
  SchedulerFactory,
  SchedulerView,
} from '../../effects/conductor/index.ts';
import type { EffectOutcome, EntryPlace } from '../../effects/index.ts';
import {
  indexTapes,
  type RecordedEntry,
  type Recording,
  type Tapes,
  topLane,
} from '../../effects/recording/index.ts';
import { unitOf } from '../../engine/state/index.ts';

/** Work of a step that a lane requests. */
export type PendingWork = {
  /** Command of the case. */
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

/** Returns the work that an effect requests; `undefined` for effects that are not work of a step. */
function pendingWork({
  effect,
  args,
  lane,
}: Pick<PendingEffect, 'effect' | 'args' | 'lane'>): PendingWork | undefined {
  const step = topLane(lane.name);
  switch (effect.name) {
    case 'function.next': {
      const key = String(args);
      return { kind: 'function', step, key, unit: key.slice(key.indexOf(':') + 1) };
    }
    case 'session.next': {
      const { key } = args as { readonly key: string };
      // The key is run:unit:attempt:number, and the unit may contain colons.
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

/** Outcomes of the turns of each function or session, in order, across lanes. */
type TurnsByKey = ReadonlyMap<string, readonly EffectOutcome[]>;

/** Key of a function or session within a command of the case. */
const turnKey = (lane: string, key: string): string => `${topLane(lane)} ${key}`;

/** Collects the recorded turns of a long effect. `keyOf` reads the function or session from its arguments. */
function turnsOf(
  entries: readonly RecordedEntry[],
  effect: string,
  keyOf: (args: unknown) => string,
): TurnsByKey {
  const turns = new Map<string, EffectOutcome[]>();
  const openKeys = new Map<string, string>();
  for (const { op, lane, args, outcome } of entries) {
    if (op === `${effect}.begin` && outcome === undefined) openKeys.set(lane, turnKey(lane, keyOf(args)));
    const key = openKeys.get(lane);
    if (op !== `${effect}.end` || key === undefined || !outcome) continue;
    turns.set(key, [...(turns.get(key) ?? []), outcome]);
  }
  return turns;
}

interface WhatIfSchedulerOptions {
  readonly recording: Recording;
  readonly time: { now(): number; advanceTo(epochMs: number): void };
  /** Replaces the placeholders in a recorded answer. */
  readonly expand: (value: unknown) => unknown;
  /** Whether work other than a function ends without being cancelled. */
  readonly endsByItself: (work: PendingWork) => boolean;
  /** Whether an override decides how the work ends. */
  readonly isForced: (work: PendingWork) => boolean;
  readonly takesMs: (work: PendingWork) => number | undefined;
}

/**
 * Thrown when the recording does not contain the end of any work that is left: it was never recorded, or interrupted.
 */
export class WhatIfDeadlock extends RepriseError {
  readonly work: readonly PendingWork[];

  constructor(waiting: readonly PendingEffect[]) {
    const lines = waiting.map(({ lane, op }) => `${lane.name} waits at ${op}`);
    super('DEADLOCK', `no lane can continue: ${lines.join('; ')}`);
    this.work = waiting.flatMap(pending => (pending.nextPhase === 'end' ? (pendingWork(pending) ?? []) : []));
  }
}

/**
 * Follows the recorded order as long as lanes do what they did in the recording, and continues without it once they
 * differ. Time passes only when nothing else can happen.
 */
export const whatIfScheduler =
  (options: WhatIfSchedulerOptions): SchedulerFactory =>
  view =>
    new WhatIfScheduler(options, view);

/** Effects that give the recorded answer if the lane has not deviated: commits and messages keep their names that way. */
const recordedAnswers: ReadonlySet<string> = new Set([
  'ids.new',
  'ids.receipt',
  'ids.session',
  'workspace.ports',
]);

/** Fixed answers: sleeping takes no real time, and a replay has no orphaned processes. */
const answers: ReadonlyMap<string, unknown> = new Map<string, unknown>([
  ['clock.sleep', undefined],
  ['function.answer', undefined],
  ['process.end-orphans', 0],
]);

class WhatIfScheduler implements Scheduler {
  readonly #options: WhatIfSchedulerOptions;
  readonly #view: SchedulerView;
  readonly #tapes: Tapes;
  readonly #functions: TurnsByKey;
  readonly #sessions: TurnsByKey;
  /** Number of ended turns of each function or session. */
  readonly #turns = new Map<string, number>();
  /** Number of the last grant of each lane. */
  readonly #lastGrants = new Map<string, number>();
  /** Last effect of each lane, not counting the clock. A lane that only renews its lease makes no progress. */
  readonly #lastEffects = new Map<string, string>();
  /** Start time of the work of each lane whose duration is overridden. */
  readonly #began = new Map<string, number>();

  constructor(options: WhatIfSchedulerOptions, view: SchedulerView) {
    this.#options = options;
    this.#view = view;
    const { recording } = options;
    this.#tapes = indexTapes(recording);
    this.#functions = turnsOf(recording.entries, 'function.next', String);
    this.#sessions = turnsOf(recording.entries, 'session.next', args => (args as { key: string }).key);
  }

  next(): PendingEffect {
    const waiting = this.#view.statuses().filter(isParked);
    const enabled = waiting.map(({ pending }) => pending).filter(pending => !this.#view.obstacleOf(pending));
    const timed = enabled.map(pending => ({ pending, at: this.#wakesAt(pending) }));
    const awake = timed.filter(({ at }) => at === undefined).map(({ pending }) => pending);
    const isStuck = enabled.every(({ lane }) => this.#lastEffects.get(lane.name) === 'store.renew');
    const next =
      awake.toSorted((a, b) => this.#order(a, b))[0] ?? (isStuck ? undefined : this.#wakeFirst(timed));
    if (!next) throw new WhatIfDeadlock(waiting.map(({ pending }) => pending));
    this.#lastGrants.set(next.lane.name, this.#view.granted + 1);
    if (!next.effect.name.startsWith('clock.')) this.#lastEffects.set(next.lane.name, next.effect.name);
    if (next.nextPhase === 'begin' && this.#takes(next) !== undefined && !this.#began.has(next.lane.name))
      this.#began.set(next.lane.name, this.#options.time.now());
    return next;
  }

  performs(pending: PendingEffect): boolean {
    return this.#performsAt(pending, pending.i);
  }

  canEnd(pending: PendingEffect): boolean {
    const { effect, args } = pending;
    switch (effect.name) {
      case 'keyboard.interrupt':
        return (args as AbortSignal).aborted;
      case 'inbox.next':
        return false;
    }
    if (effect.awaits?.isOver(args) === false) return false;
    const work = pendingWork(pending);
    if (!work || this.#options.isForced(work)) return true;
    if (work.kind === 'function') return this.#turn(this.#functions, pending, work.key)?.kind === 'ok';
    if (this.#options.endsByItself(work)) return true;
    // A session that was interrupted later still has the turns before the interruption.
    return work.kind === 'session' && this.#turn(this.#sessions, pending, work.key)?.kind === 'ok';
  }

  answerOf(pending: PendingEffect, { i }: EntryPlace): EffectOutcome | 'perform' {
    if (this.#performsAt(pending, i)) return 'perform';
    if (pending.isCancelling) return { kind: 'cancelled' };
    const { effect, args, lane } = pending;
    if (effect.name !== 'function.next') {
      const value = answers.has(effect.name) ? answers.get(effect.name) : this.#recordedAnswer(pending, i);
      return { kind: 'ok', value: this.#options.expand(value) };
    }
    const key = String(args);
    const turn = this.#turn(this.#functions, pending, key);
    this.#count(turnKey(lane.name, key));
    return turn?.kind === 'ok'
      ? { kind: 'ok', value: this.#options.expand(turn.value) }
      : { kind: 'ok', value: { kind: 'ended', end: { kind: 'completed', output: null } } };
  }

  judge(pending: PendingEffect, _place: unknown, outcome: EffectOutcome): EffectOutcome {
    const { effect, args, lane } = pending;
    if (effect.name === 'session.next') this.#count(turnKey(lane.name, (args as { key: string }).key));
    return outcome;
  }

  laneEnded(): void {}

  finished(): void {}

  #order(a: PendingEffect, b: PendingEffect): number {
    const [left, right] = [this.#placeOf(a), this.#placeOf(b)];
    if (left !== right) return left < right ? -1 : 1;
    return (this.#lastGrants.get(a.lane.name) ?? 0) - (this.#lastGrants.get(b.lane.name) ?? 0);
  }

  /** Position in the recorded order. */
  #placeOf(pending: PendingEffect): number {
    const recorded = this.#tapes.of(pending.lane.name)[pending.i];
    return recorded?.op === pending.op ? recorded.n : Number.POSITIVE_INFINITY;
  }

  #performsAt(pending: PendingEffect, i: number): boolean {
    const { name } = pending.effect;
    if (name === 'function.next' || answers.has(name)) return false;
    return !recordedAnswers.has(name) || this.#recordedAnswer(pending, i) === undefined;
  }

  /** Recorded answer at the same position of the lane. */
  #recordedAnswer({ lane, effect }: PendingEffect, i: number): unknown {
    const recorded = this.#tapes.of(lane.name)[i];
    return recorded?.op === effect.name && recorded.outcome?.kind === 'ok'
      ? recorded.outcome.value
      : undefined;
  }

  #turn(turns: TurnsByKey, { lane }: PendingEffect, key: string): EffectOutcome | undefined {
    const name = turnKey(lane.name, key);
    return turns.get(name)?.[this.#turns.get(name) ?? 0];
  }

  #count(name: string): void {
    this.#turns.set(name, (this.#turns.get(name) ?? 0) + 1);
  }

  #takes(pending: PendingEffect): number | undefined {
    const work = pendingWork(pending);
    return work && this.#options.takesMs(work);
  }

  /** Time at which the effect can end; `undefined` if it need not wait for time to pass. */
  #wakesAt(pending: PendingEffect): number | undefined {
    if (pending.isCancelling || pending.nextPhase !== 'end') return undefined;
    if (pending.effect.name === 'clock.sleep') return Number(pending.args);
    const began = this.#began.get(pending.lane.name);
    const ms = began === undefined ? undefined : this.#takes(pending);
    if (began === undefined || ms === undefined) return undefined;
    return this.#options.time.now() < began + ms ? began + ms : undefined;
  }

  #wakeFirst(
    timed: readonly { readonly pending: PendingEffect; readonly at: number | undefined }[],
  ): PendingEffect | undefined {
    const [first] = timed.toSorted((a, b) => (a.at ?? 0) - (b.at ?? 0));
    if (first?.at !== undefined) this.#options.time.advanceTo(first.at);
    return first?.pending;
  }
}

const isParked = (status: LaneStatus): status is ParkedLane => status.kind === 'parked';
