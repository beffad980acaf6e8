import { AsyncLocalStorage } from 'node:async_hooks';
import {
  type Effect,
  type EffectDefinition,
  type EffectOutcome,
  errorOf,
  failed,
  type Keys,
} from './effect.ts';
import { inOrderOfArrival, KeyTable, ParkedEntries } from './key-table.ts';
import {
  cancelLanes,
  failureOf,
  insideAnEffect,
  joinLanes,
  Lane,
  LaneEntry,
  nameTaken,
  ok,
  outsideAnyLane,
  performEntry,
  secondEffect,
  startBody,
  strayLane,
  unfinishedBusiness,
} from './lane.ts';
import type { EntryPlace, Phase, Tracer } from './tracer.ts';
import {
  type AbandonableWorld,
  createMailbox,
  type LaneRef,
  type Mailbox,
  type MailboxOptions,
  type World,
} from './world.ts';

export interface LiveOptions {
  /**
   * Whether to fail a lane that awaits anything but an effect (a timer, I/O, another lane's promise). Such a lane works
   * live but could not be replayed, so tests enable this.
   */
  readonly refuseStrays?: boolean;
  /** Receives every effect, in the order in which they are granted. */
  readonly tracer?: Tracer | undefined;
}

/** Creates the world of normal runs: effects overlap freely, unless their keys conflict. */
export const createLiveWorld = (options: LiveOptions = {}): AbandonableWorld => new LiveWorld(options);

/** Owner of the running code: a lane, or an effect that is performed for it. */
type Context = Lane | LaneEntry;

class LiveWorld implements AbandonableWorld {
  readonly #context = new AsyncLocalStorage<Context>();
  readonly #lanes = new Map<string, Lane>();
  readonly #keys = new KeyTable();
  readonly #refuseStrays: boolean;
  readonly #tracer: Tracer | undefined;
  #granted = 0;
  /** Requests of this turn that have not been considered yet. */
  #arrived: LaneEntry[] = [];
  /** Waits whose condition is false, and effects whose keys are held, in order of arrival. */
  readonly #parked = new ParkedEntries();
  /** Parked entries that something concerned since they were last considered. */
  readonly #concerned = new Set<LaneEntry>();
  /** Parked entries that drain a queue once the turn is over. */
  #draining = new Set<LaneEntry>();
  #performing = 0;
  #reconsidering = false;
  #endArmed = false;

  constructor(options: LiveOptions) {
    this.#refuseStrays = options.refuseStrays ?? false;
    this.#tracer = options.tracer;
    this.join = this.effect(joinLanes);
    this.cancel = this.effect(cancelLanes(root => this.#cancelTree(root)));
  }

  readonly join: World['join'];
  readonly cancel: World['cancel'];

  async open<T>(ownName: string, body: () => Promise<T>): Promise<T> {
    const outer = this.#context.getStore() && this.#here('open');
    const name = outer ? `${outer.name}/${ownName}` : ownName;
    if (this.#lanes.has(name)) throw nameTaken(name);
    let value: { readonly result: T } | undefined;
    const lane = new Lane(name, outer);
    await this.#live(lane, async () => {
      value = { result: await body() };
    });
    if (!value || lane.failure !== undefined) throw lane.failure;
    return value.result;
  }

  effect<Args, Result>(definition: EffectDefinition<Args, Result>): Effect<Args, Result> {
    return args => this.#request(definition as EffectDefinition<unknown, unknown>, args) as Promise<Result>;
  }

  fork(body: () => Promise<void>): LaneRef {
    const parent = this.#here('fork');
    const lane = new Lane(parent.nextChildName(), parent);
    void this.#live(lane, body);
    return lane;
  }

  mailbox<Message>(name: string, options?: MailboxOptions<Message>): Mailbox<Message> {
    return createMailbox(name, definition => this.effect(definition), options);
  }

  async abandon(name: string): Promise<void> {
    const root = this.#lanes.get(name);
    if (!root) return;
    const performed: Promise<void>[] = [];
    for (const lane of root.subtree()) {
      lane.abandoned = true;
      this.#lanes.delete(lane.name);
      const { entry } = lane;
      if (!entry) continue;
      this.#unpark(entry);
      if (entry.phase !== 'granted') continue;
      entry.cancel();
      performed.push(entry.performed);
    }
    await Promise.all(performed);
    this.#reconsider();
  }

  /** Uses `then` here and below because each promise costs a microsecond while AsyncLocalStorage tracks the lanes. */
  #live(lane: Lane, body: () => Promise<void>): Promise<void> {
    this.#lanes.set(lane.name, lane);
    return this.#context.run(lane, () =>
      startBody(body).then(
        () => this.#end(lane, unfinishedBusiness(lane)),
        (thrown: unknown) => this.#end(lane, failureOf(lane, thrown)),
      ),
    );
  }

  #end(lane: Lane, failure: unknown): void {
    if (failure !== undefined) lane.failure = failure;
    lane.end();
    this.#lanes.delete(lane.name);
    for (const entry of this.#parked.keyless) this.#concerned.add(entry);
    this.#reconsider();
    // Without this, every promise in the process would keep tracking each empty world that ever existed.
    if (this.#lanes.size === 0 && this.#performing === 0) this.#context.disable();
  }

  #here(what: string): Lane {
    const context = this.#context.getStore();
    if (!context) throw outsideAnyLane(what);
    if (context instanceof Lane) return context;
    throw insideAnEffect(what, context);
  }

  #request(effect: EffectDefinition<unknown, unknown>, args: unknown): Promise<unknown> {
    return new Promise((resolve, reject) => {
      const lane = this.#here(effect.name);
      if (lane.abandoned) return;
      if (lane.entry) throw secondEffect(effect.name, lane.entry);
      lane.entry = new LaneEntry(lane, effect, args, outcome => {
        lane.entry = undefined;
        if (outcome.kind === 'ok') resolve(outcome.value);
        else reject(errorOf(effect.name, outcome));
      });
      // Not granted inside the call: an effect that completed here would hide a second one from the same lane.
      if (this.#arrived.push(lane.entry) === 1) queueMicrotask(() => this.#grantArrived());
    });
  }

  #grantArrived(): void {
    const arrived = this.#arrived;
    this.#arrived = [];
    // The tracer, called for one of them, may abandon the lane of the next.
    for (const entry of arrived) if (!entry.lane.abandoned) this.#consider(entry, false);
    if (this.#parked.size > 0) this.#armEndOfTurn();
  }

  /** Grants the entry, or parks it. Returns whether it was granted. */
  #consider(entry: LaneEntry, turnIsOver: boolean): boolean {
    if (entry.isCancelling) this.#finish(entry, { kind: 'cancelled' });
    else if (entry.effect.enabled?.(entry.args) === false || !this.#mayTakeKeys(entry))
      return this.#park(entry);
    else if (entry.effect.drains && !turnIsOver) {
      this.#draining.add(entry);
      this.#armEndOfTurn();
      return this.#park(entry);
    } else this.#grant(entry);
    return true;
  }

  #park(entry: LaneEntry): false {
    entry.phase = 'waiting';
    this.#parked.add(entry);
    return false;
  }

  /** Removes an entry that ends without being granted. Entries queued behind it may start. */
  #unpark(entry: LaneEntry): void {
    if (!this.#parked.delete(entry)) return;
    this.#draining.delete(entry);
    this.#concerned.delete(entry);
    this.#parked.concernedBy(entry.keys, this.#concerned);
  }

  /** Whether the keys are free and no earlier entry waits for them: readers must not starve a blocked writer. */
  #mayTakeKeys(entry: LaneEntry): boolean {
    return this.#keys.areFree(entry.keys) && !this.#parked.hasEarlier(entry, this.#comesFirst);
  }

  /** Whether a parked entry starts as soon as its keys are free. */
  readonly #comesFirst = ({ effect, args, keys }: LaneEntry): boolean =>
    !this.#keys.areHeldForLong(keys) && effect.enabled?.(args) !== false && !effect.drains;

  #grant(entry: LaneEntry): void {
    const { effect, lane, keys } = entry;
    if (this.#parked.delete(entry)) this.#draining.delete(entry);
    entry.phase = 'granted';
    lane.lastEffect = effect.name;
    this.#keys.take(keys, effect.span);
    // No entry queues behind one that waits for a long effect.
    if (effect.span === 'long') this.#concern(keys);
    this.#performing++;
    if (this.#tracer) {
      entry.place = this.#nextPlace(lane, effect.span === 'short' ? 'short' : 'begin');
      this.#tracer.granted(entry, entry.place);
    }
    // Without its own context, the effect would run as the lane whose entry happened to unblock it.
    const result = this.#context.run(entry, performEntry, entry);
    if (result instanceof Promise) {
      void result.then(
        value => this.#performed(entry, ok(value)),
        (thrown: unknown) => this.#performed(entry, failed(thrown)),
      );
    } else this.#performed(entry, result);
  }

  #performed(entry: LaneEntry, outcome: EffectOutcome): void {
    this.#performing--;
    this.#keys.give(entry.keys, entry.effect.span);
    entry.wasPerformed();
    this.#concern(entry.keys);
    this.#finish(entry, entry.isCancelling ? { kind: 'cancelled' } : outcome);
    this.#reconsider();
  }

  #nextPlace(lane: Lane, phase: Phase): EntryPlace {
    return { n: this.#granted++, i: lane.entries++, phase };
  }

  #finish(entry: LaneEntry, outcome: EffectOutcome): void {
    this.#unpark(entry);
    if (entry.lane.abandoned) return;
    if (this.#tracer) {
      const { lane, effect, place: position } = entry;
      const isNew = position === undefined || effect.span === 'long';
      const phase = effect.span === 'short' ? 'short' : position ? 'end' : 'begin';
      this.#tracer.settled(entry, isNew ? this.#nextPlace(lane, phase) : position, outcome);
      // The tracer may have abandoned the lane.
      if (entry.lane.abandoned) return;
    }
    entry.settle(outcome);
    if (this.#refuseStrays) this.#armEndOfTurn();
  }

  /** Keys became free, or the state behind waits for them changed. */
  #concern(keys: Keys): void {
    this.#parked.concernedBy(keys, this.#concerned);
  }

  /** Reconsiders the parked entries that something concerned. */
  #reconsider(): void {
    if (this.#parked.size === 0) return;
    // A synchronous effect calls this again. A loop instead of recursion keeps the stack flat.
    if (!this.#reconsidering) {
      this.#reconsidering = true;
      while (this.#concerned.size > 0) {
        const concerned = inOrderOfArrival(this.#concerned);
        this.#concerned.clear();
        for (const entry of concerned) if (this.#parked.has(entry)) this.#consider(entry, false);
      }
      this.#reconsidering = false;
    }
    this.#armEndOfTurn();
  }

  /** Microtasks are exhausted before an immediate runs, so by then every lane has reached what it really waits for. */
  #armEndOfTurn(): void {
    if (this.#endArmed) return;
    this.#endArmed = true;
    setImmediate(() => {
      this.#endArmed = false;
      this.#reportDeadlock();
      if (this.#refuseStrays) this.#reportStrays();
      const draining = this.#draining;
      if (draining.size === 0) return;
      this.#draining = new Set();
      for (const entry of draining) if (this.#parked.has(entry)) this.#consider(entry, true);
    });
  }

  #cancelTree(root: Lane): void {
    for (const lane of root.subtree()) {
      lane.cancelled = true;
      const { entry } = lane;
      if (!entry?.isCancelling) continue;
      if (entry.phase === 'granted') entry.cancel();
      else if (entry.phase === 'waiting') this.#finish(entry, { kind: 'cancelled' });
    }
  }

  #reportDeadlock(): void {
    if (
      this.#performing > 0 ||
      this.#draining.size > 0 ||
      this.#arrived.length > 0 ||
      this.#parked.size < this.#lanes.size
    )
      return;
    const waits = [...this.#parked]
      .map(({ lane, effect }) => `${lane.name} waits at ${effect.name}`)
      .join('; ');
    const error = { code: 'DEADLOCK', message: `no lane can continue: ${waits}` };
    for (const entry of [...this.#parked]) this.#finish(entry, { kind: 'failed', error });
  }

  #reportStrays(): void {
    for (const lane of this.#lanes.values()) {
      if (lane.entry || lane.ended) continue;
      lane.failure ??= strayLane(lane);
    }
  }
}
