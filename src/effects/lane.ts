import { RepriseError } from '../core/errors.ts';
import {
  type Cancellation,
  type EffectDefinition,
  failed,
  isGroup,
  type Keys,
  type Outcome,
} from './effect.ts';
import type { EntryPlace } from './tracer.ts';
import type { LaneRef } from './world.ts';

/** A request for an effect, from the call until its outcome is handed to the lane. */
export class Entry implements Cancellation {
  readonly keys: Keys;
  phase: 'requested' | 'waiting' | 'granted' = 'requested';
  /** Where it was granted, if somebody keeps track. */
  place: EntryPlace | undefined;
  #cancelled = false;
  #abort: AbortController | undefined;
  #listeners: (() => void)[] | undefined;
  #isPerformed = false;
  #onPerformed: (() => void) | undefined;

  constructor(
    readonly lane: Lane,
    readonly effect: EffectDefinition<unknown, unknown>,
    readonly args: unknown,
    readonly settle: (outcome: Outcome) => void,
  ) {
    this.keys = effect.keys?.(args) ?? noKeys;
  }

  get signal(): AbortSignal {
    this.#abort ??= new AbortController();
    if (this.#cancelled) this.#abort.abort();
    return this.#abort.signal;
  }

  onCancel(listener: () => void): void {
    if (this.#cancelled) listener();
    else if (this.#listeners) this.#listeners.push(listener);
    else this.#listeners = [listener];
  }

  /** Tells the effect under way to end. */
  cancel(): void {
    if (this.#cancelled) return;
    this.#cancelled = true;
    this.#abort?.abort();
    for (const listener of this.#listeners ?? []) listener();
  }

  /** Resolves when nothing is performed for it any more. */
  get performed(): Promise<void> {
    return new Promise(resolve => {
      if (this.#isPerformed) resolve();
      else this.#onPerformed = resolve;
    });
  }

  wasPerformed(): void {
    this.#isPerformed = true;
    this.#onPerformed?.();
  }

  /** A cancelled lane starts no long effect and waits for nothing; its short effects still run, to tidy up. */
  get isDoomed(): boolean {
    const { span, enabled, cleanup } = this.effect;
    return this.lane.cancelled && !cleanup && (span === 'long' || enabled !== undefined);
  }
}

const noKeys: Keys = {};

export class Lane implements LaneRef {
  /** Those alive. */
  readonly #children = new Set<Lane>();
  /** The one effect that is under way. */
  entry: Entry | undefined;
  cancelled = false;
  ended = false;
  /** What its body threw. */
  failure: unknown;
  lastEffect = '(nothing yet)';
  /** How many entries it has in the order. */
  entries = 0;
  /** Nothing that it asks for ends any more. */
  abandoned = false;
  #forks = 0;

  constructor(
    readonly name: string,
    readonly parent: Lane | undefined,
  ) {
    this.cancelled = parent?.cancelled ?? false;
    this.abandoned = parent?.abandoned ?? false;
    if (parent) parent.#children.add(this);
  }

  get firstChild(): Lane | undefined {
    return this.#children.values().next().value;
  }

  end(): void {
    this.ended = true;
    if (this.parent) this.parent.#children.delete(this);
  }

  nextChildName(): string {
    return `${this.name}/${this.#forks++}`;
  }

  /** This lane and all below it. */
  *subtree(): Generator<Lane> {
    yield this;
    for (const child of this.#children) yield* child.subtree();
  }
}

const laneNames = (lanes: readonly LaneRef[]): readonly string[] => lanes.map(({ name }) => name);

/** Waits for lanes, in every world. */
export const joinLanes: EffectDefinition<readonly LaneRef[], void> = {
  name: 'lane.join',
  span: 'short',
  answer: 'inside',
  taped: { args: laneNames },
  cleanup: true,
  enabled: lanes => lanes.every(lane => (lane as Lane).ended),
  perform: lanes => {
    for (const lane of lanes as readonly Lane[]) if (lane.failure !== undefined) throw lane.failure;
  },
};

/** Cancels lanes, in a world that knows how to cancel one with all below it. */
export const cancelLanes = (
  cancelTree: (root: Lane) => void,
): EffectDefinition<readonly LaneRef[], void> => ({
  name: 'lane.cancel',
  span: 'short',
  answer: 'inside',
  taped: { args: laneNames },
  perform: lanes => {
    for (const lane of lanes as readonly Lane[]) cancelTree(lane);
  },
});

/** Runs it at once up to its first effect; what it throws before that rejects like what it throws later. */
export function startBody(body: () => Promise<void>): Promise<void> {
  try {
    return body();
  } catch (thrown) {
    return Promise.reject(thrown);
  }
}

/** Performs the effect; what it throws at once is an outcome, what it throws later a rejection. */
export function performEntry(entry: Entry): Outcome | Promise<unknown> {
  try {
    const result = entry.effect.perform(entry.args, entry);
    return result instanceof Promise ? result : ok(result);
  } catch (thrown) {
    return failed(thrown);
  }
}

export const ok = (value: unknown): Outcome => ({ kind: 'ok', value });

/** What a body threw; never undefined, so that a join can tell that it threw. */
export const failureOf = (lane: LaneRef, thrown: unknown): unknown =>
  thrown ?? new RepriseError('INTERNAL', `lane ${lane.name} threw ${String(thrown)}`);

export function unfinishedBusiness(lane: Lane): RepriseError | undefined {
  if (lane.entry) return misuse(lane, `ended without awaiting ${lane.entry.effect.name}`);
  const child = lane.firstChild;
  return child && misuse(lane, `ended before ${child.name}, which it forked; join it first`);
}

export const nameTaken = (name: string): RepriseError =>
  new RepriseError('LANE_MISUSE', `a lane named ${name} is already open`);

export const outsideAnyLane = (what: string): RepriseError =>
  new RepriseError('LANE_MISUSE', `${what} was called outside any lane`);

export const insideAnEffect = (what: string, { lane, effect }: Entry): RepriseError =>
  misuse(lane, `called ${what} inside the effect ${effect.name}; effects do not nest`);

export const secondEffect = (what: string, { lane, effect }: Entry): RepriseError =>
  misuse(
    lane,
    `asked for ${what} while ${effect.name} is under way; await it first, or use fork() instead of Promise.all`,
  );

export const strayLane = (lane: Lane): RepriseError =>
  misuse(
    lane,
    `awaits something that is not an effect (a timer, I/O, another lane's promise) after ${lane.lastEffect}`,
  );

const misuse = (lane: LaneRef, what: string) => new RepriseError('LANE_MISUSE', `lane ${lane.name} ${what}`);

interface Hold {
  readers: number;
  writers: number;
  /** How many of them are long effects, which may take minutes. */
  long: number;
}

const isHeld = (): boolean => true;
const isWritten = ({ writers }: Hold): boolean => writers > 0;
const isHeldForLong = ({ long }: Hold): boolean => long > 0;

/** Which keys are held, by how many effects. */
export class KeyTable {
  readonly #holds = new Map<string, Hold>();
  /** Those of the keys held that stand for many: as long as there are none, a plain key meets only itself. */
  readonly #groups = new Set<string>();

  areFree(keys: Keys): boolean {
    if (this.#holds.size === 0) return true;
    for (const key of keys.writes ?? []) if (this.#meets(key, isHeld)) return false;
    for (const key of keys.reads ?? []) if (this.#meets(key, isWritten)) return false;
    return true;
  }

  take(keys: Keys, span: 'short' | 'long'): void {
    for (const key of keys.writes ?? [])
      this.#change({ key, readers: 0, writers: 1, long: span === 'long' ? 1 : 0 });
    for (const key of keys.reads ?? [])
      this.#change({ key, readers: 1, writers: 0, long: span === 'long' ? 1 : 0 });
  }

  give(keys: Keys, span: 'short' | 'long'): void {
    for (const key of keys.writes ?? [])
      this.#change({ key, readers: 0, writers: -1, long: span === 'long' ? -1 : 0 });
    for (const key of keys.reads ?? [])
      this.#change({ key, readers: -1, writers: 0, long: span === 'long' ? -1 : 0 });
  }

  /** Whether some of the keys will stay held for long: nobody should queue behind an effect that waits for them. */
  areHeldForLong(keys: Keys): boolean {
    for (const key of keys.writes ?? []) if (this.#meets(key, isHeldForLong)) return true;
    for (const key of keys.reads ?? []) if (this.#meets(key, isHeldForLong)) return true;
    return false;
  }

  #meets(key: string, counts: (hold: Hold) => boolean): boolean {
    const own = this.#holds.get(key);
    if (own && counts(own)) return true;
    if (isGroup(key)) {
      for (const [held, hold] of this.#holds) if (held.startsWith(key) && counts(hold)) return true;
    }
    for (const group of this.#groups) {
      const hold = key.startsWith(group) ? this.#holds.get(group) : undefined;
      if (hold && counts(hold)) return true;
    }
    return false;
  }

  #change({ key, readers, writers, long }: Hold & { key: string }): void {
    const hold = this.#holds.get(key);
    if (!hold) {
      this.#holds.set(key, { readers, writers, long });
      if (isGroup(key)) this.#groups.add(key);
      return;
    }
    hold.readers += readers;
    hold.writers += writers;
    hold.long += long;
    if (hold.readers > 0 || hold.writers > 0) return;
    this.#holds.delete(key);
    this.#groups.delete(key);
  }
}
