import { RepriseError } from '../core/index.ts';
import { type Cancellation, type EffectDefinition, type EffectOutcome, failed, type Keys } from './effect.ts';
import type { EntryPlace } from './tracer.ts';
import type { LaneRef } from './world.ts';

/** A request for an effect, from the call until its outcome is delivered to the lane. */
export class LaneEntry implements Cancellation {
  readonly keys: Keys;
  phase: 'requested' | 'waiting' | 'granted' = 'requested';
  /** Position in the order of granted entries, if a tracer keeps it. */
  place: EntryPlace | undefined;
  /** Position in the order in which entries were parked. Undefined while the entry is not parked. */
  parkedAt: number | undefined;
  #cancelled = false;
  #abort: AbortController | undefined;
  #listeners: (() => void)[] | undefined;
  #isPerformed = false;
  #onPerformed: (() => void) | undefined;

  constructor(
    readonly lane: Lane,
    readonly effect: EffectDefinition<unknown, unknown>,
    readonly args: unknown,
    readonly settle: (outcome: EffectOutcome) => void,
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

  /** Tells the effect in progress to stop. */
  cancel(): void {
    if (this.#cancelled) return;
    this.#cancelled = true;
    this.#abort?.abort();
    for (const listener of this.#listeners ?? []) listener();
  }

  /** Resolves when the effect is no longer being performed. */
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

  /** Whether the entry ends as cancelled. A cancelled lane starts no long effect and no wait, only short effects. */
  get isCancelling(): boolean {
    const { span, enabled, cleanup } = this.effect;
    return this.lane.cancelled && !cleanup && (span === 'long' || enabled !== undefined);
  }
}

const noKeys: Keys = {};

export class Lane implements LaneRef {
  /** Children that have not ended. */
  readonly #children = new Set<Lane>();
  /** The effect in progress; a lane has at most one. */
  entry: LaneEntry | undefined;
  cancelled = false;
  ended = false;
  /** Value that the body threw. */
  failure: unknown;
  lastEffect = '(no effect yet)';
  /** Number of its entries in the schedule. */
  entries = 0;
  /** Whether the lane is frozen: its requests are never answered. */
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

/** Waits for lanes. All worlds use this definition. */
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

/** Cancels lanes. `cancelTree` cancels one lane and all below it. */
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

/** Runs the body synchronously up to its first effect. Rejects if the body throws, before or after that. */
export function startBody(body: () => Promise<void>): Promise<void> {
  try {
    return body();
  } catch (thrown) {
    return Promise.reject(thrown);
  }
}

/** Performs the effect. An error thrown synchronously becomes an outcome, a later one a rejection. */
export function performEntry(entry: LaneEntry): EffectOutcome | Promise<unknown> {
  try {
    const result = entry.effect.perform(entry.args, entry);
    return result instanceof Promise ? result : ok(result);
  } catch (thrown) {
    return failed(thrown);
  }
}

export const ok = (value: unknown): EffectOutcome => ({ kind: 'ok', value });

/** The value that a body threw. Never undefined, so that a join can tell that the body threw. */
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

export const insideAnEffect = (what: string, { lane, effect }: LaneEntry): RepriseError =>
  misuse(lane, `called ${what} inside the effect ${effect.name}; effects do not nest`);

export const secondEffect = (what: string, { lane, effect }: LaneEntry): RepriseError =>
  misuse(
    lane,
    `called ${what} while ${effect.name} is still running; await it first, or use fork() instead of Promise.all`,
  );

export const strayLane = (lane: Lane): RepriseError =>
  misuse(
    lane,
    `awaits a promise that is not an effect (a timer, I/O, another lane's promise) after ${lane.lastEffect}`,
  );

const misuse = (lane: LaneRef, what: string) => new RepriseError('LANE_MISUSE', `lane ${lane.name} ${what}`);
