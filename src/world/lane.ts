import type { Cancellation, EffectDefinition, Keys } from '../effects/effect.ts';
import type { EntryPlace } from '../effects/tracer.ts';
import type { LaneRef } from '../effects/world.ts';
import type { Outcome } from './outcome.ts';

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
