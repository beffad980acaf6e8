import { AsyncLocalStorage } from 'node:async_hooks';
import { RepriseError } from '../../core/index.ts';
import { Origin, unknownOrigin } from '../divergence/explain.ts';
import { type Effect, type EffectDefinition, errorOf } from '../effect.ts';
import { KeyTable } from '../key-table.ts';
import {
  cancelLanes,
  failureOf,
  insideAnEffect,
  joinLanes,
  type Lane,
  nameTaken,
  outsideAnyLane,
  performEntry,
  secondEffect,
  startBody,
  strayLane,
  unfinishedBusiness,
} from '../lane.ts';
import type { Witness } from '../recording/recording.ts';
import type { Tracer } from '../tracer.ts';
import {
  type AbandonableWorld,
  createMailbox,
  type LaneRef,
  type Mailbox,
  type MailboxOptions,
  type World,
} from '../world.ts';
import { createPacer, Grants, type Pace, type Pacer, StopSignal, WitnessCount } from './grants.ts';
import { ConductedLane, createView, PendingEntry } from './pending.ts';
import type { Happening, Scheduler, SchedulerFactory } from './scheduler.ts';

/** The live lanes, by name and sorted by name, so that nothing depends on the order of arrival. */
export class LaneTable {
  readonly #byName = new Map<string, ConductedLane>();
  #inOrder: readonly ConductedLane[] | undefined;

  get inOrder(): readonly ConductedLane[] {
    this.#inOrder ??= [...this.#byName.values()].sort((a, b) => (a.name < b.name ? -1 : 1));
    return this.#inOrder;
  }

  get(name: string): ConductedLane | undefined {
    return this.#byName.get(name);
  }

  has(name: string): boolean {
    return this.#byName.has(name);
  }

  add(lane: ConductedLane): void {
    this.#byName.set(lane.name, lane);
    this.#inOrder = undefined;
  }

  delete(name: string): void {
    this.#byName.delete(name);
    this.#inOrder = undefined;
  }
}

interface ConductedWorldOptions {
  readonly scheduler: SchedulerFactory;
  /** Defaults to `turn`. */
  readonly pace?: Pace;
  /** Whether to capture the source position of every call, for messages. Defaults to true. */
  readonly remembersOrigins?: boolean;
  /** Receives every effect, in the order in which they are granted, like the tracer of a live world. */
  readonly tracer?: Tracer | undefined;
}

/**
 * A world in which a scheduler decides which lane continues, one at a time. A lane that calls an effect is parked. When
 * no lane runs, all are parked, and the scheduler grants the effect of one. Root lanes may await anything, and count as
 * running meanwhile; all others may await only effects.
 */
export interface ConductedWorld extends AbandonableWorld {
  /**
   * Resolves with the first divergence, deadlock or misuse. No lane can catch it: from then on no effect returns.
   * Root lanes reject with it.
   */
  readonly stopped: Promise<Error>;
  /** Call it when all lanes have ended. Throws the error that stopped the world, or a final error of the scheduler. */
  finish(): Promise<void>;
  witness(): Witness;
}

export const createConductedWorld = (options: ConductedWorldOptions): ConductedWorld =>
  new Conductor(options);

class Conductor implements ConductedWorld {
  readonly #context = new AsyncLocalStorage<ConductedLane | PendingEntry | undefined>();
  readonly #lanes = new LaneTable();
  readonly #keys = new KeyTable();
  readonly #scheduler: Scheduler;
  readonly #grants: Grants;
  readonly #pacer: Pacer;
  readonly #stop = new StopSignal();
  readonly #count = new WitnessCount();
  /** Lanes whose own code runs or awaits something other than an effect. */
  readonly #running = new Set<ConductedLane>();
  readonly #originOf: (above: (args: never) => unknown) => Origin;
  #endedLanes: ConductedLane[] = [];
  /** Whether an event outside all lanes is in progress. */
  #happens = false;

  readonly join: World['join'];
  readonly cancel: World['cancel'];

  constructor({ scheduler, pace = 'turn', remembersOrigins = true, tracer }: ConductedWorldOptions) {
    this.#originOf = remembersOrigins ? above => new Origin(above) : () => unknownOrigin;
    this.#pacer = createPacer({
      pace,
      decide: () => this.#decide(),
      turnIsOver: () => this.#reportStrays(),
    });
    this.join = this.effect(joinLanes);
    this.cancel = this.effect(cancelLanes(root => this.#cancelTree(root)));
    this.#scheduler = scheduler(
      createView({
        lanes: this.#lanes,
        keys: this.#keys,
        granted: () => this.#grants.granted,
        scheduler: () => this.#scheduler,
      }),
    );
    this.#grants = new Grants({
      scheduler: this.#scheduler,
      tracer,
      keys: this.#keys,
      stop: this.#stop,
      count: this.#count,
      // Without its own context, the effect would run as the lane whose entry happened to unblock it.
      perform: pending => this.#context.run(pending, performEntry, pending),
      resume: lane => this.#resume(lane),
      landed: () => this.#pacer.arm(),
    });
  }

  get stopped(): Promise<Error> {
    return this.#stop.happened;
  }

  witness(): Witness {
    return this.#count.witness;
  }

  open<T>(ownName: string, body: () => Promise<T>): Promise<T> {
    return new Promise((resolve, reject) => {
      const outer = this.#context.getStore() && this.#here('open');
      if (outer === 'misused') return reject(this.#stop.error);
      const name = outer ? `${outer.name}/${ownName}` : ownName;
      if (this.#lanes.has(name)) this.#stop.because(nameTaken(name));
      if (!outer && this.#stop.error) return reject(this.#stop.error);
      if (this.#stop.error) return;
      const lane = new ConductedLane(name, outer, outer ? 'inner' : 'top');
      const onStop = (error: Error) => {
        if (!lane.abandoned) reject(error);
      };
      if (!outer) this.#stop.addListener(onStop);
      let value: { readonly result: T } | undefined;
      const ended = this.#live(lane, async () => {
        value = { result: await body() };
      });
      void ended.then(() => {
        this.#stop.removeListener(onStop);
        if (this.#stop.error) return;
        if (value && lane.failure === undefined) resolve(value.result);
        else reject(lane.failure);
      });
    });
  }

  effect<Args, Result>(definition: EffectDefinition<Args, Result>): Effect<Args, Result> {
    const ask = (args: Args): Promise<Result> =>
      this.#request(definition as EffectDefinition<unknown, unknown>, args, ask) as Promise<Result>;
    return ask;
  }

  fork(body: () => Promise<void>): LaneRef {
    const parent = this.#here('fork');
    if (parent === 'misused') throw this.#stop.error;
    const lane = new ConductedLane(parent.nextChildName(), parent, 'forked');
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
    for (const lane of root.subtree() as Iterable<ConductedLane>) {
      lane.abandoned = true;
      this.#lanes.delete(lane.name);
      this.#running.delete(lane);
      if (lane.entry) performed.push(this.#grants.abandon(lane.entry));
    }
    if (root.birth === 'top') this.#count.closed();
    await Promise.all(performed);
    this.#pacer.arm();
  }

  async finish(): Promise<void> {
    // Misuse by the last lane is detected at the end of its turn.
    await new Promise(resolve => setImmediate(resolve));
    const [left] = this.#lanes.inOrder;
    if (left)
      this.#stop.because(
        new RepriseError('LANE_MISUSE', `finish was called while lane ${left.name} is open`),
      );
    this.#stop.guard(() => this.#scheduler.finished(this.#count.witness));
    await this.#grants.performance;
    // Without this, every promise in the process would keep tracking each empty world that ever existed.
    this.#context.disable();
    if (this.#stop.error) throw this.#stop.error;
  }

  #live(lane: ConductedLane, body: () => Promise<void>): Promise<void> {
    if (!lane.abandoned) this.#enter(lane);
    return this.#context.run(lane, () =>
      startBody(body).then(
        () => this.#end(lane, unfinishedBusiness(lane), undefined),
        (thrown: unknown) => this.#end(lane, undefined, failureOf(lane, thrown)),
      ),
    );
  }

  #enter(lane: ConductedLane): void {
    this.#lanes.add(lane);
    this.#resume(lane);
    if (lane.birth === 'top') this.#count.opened();
    else if (lane.birth === 'inner' && lane.parent) {
      lane.parent.inner++;
      this.#running.delete(lane.parent);
    }
  }

  #end(lane: ConductedLane, misuse: Error | undefined, failure: unknown): void {
    if (misuse && !lane.abandoned) this.#stop.because(misuse);
    if (this.#stop.error) return;
    lane.failure = failure;
    lane.end();
    if (lane.abandoned) return;
    this.#lanes.delete(lane.name);
    this.#endedLanes.push(lane);
    if (lane.birth === 'top') this.#count.closed();
    const { parent } = lane;
    if (lane.birth === 'inner' && parent && --parent.inner === 0 && !parent.entry) this.#resume(parent);
    this.#rest(lane);
  }

  /** An effect called inside another one gets an error, so that the outer one ends. The lane sees neither result. */
  #here(what: string): ConductedLane | 'misused' {
    const context = this.#context.getStore();
    if (context instanceof ConductedLane) return context;
    if (context) {
      this.#stop.because(insideAnEffect(what, context));
      return 'misused';
    }
    const error = outsideAnyLane(what);
    this.#stop.because(error);
    throw error;
  }

  #request(
    effect: EffectDefinition<unknown, unknown>,
    args: unknown,
    ask: (args: never) => unknown,
  ): Promise<unknown> {
    // A new promise each time: a shared one that never settles would keep every abandoned lane in memory.
    return new Promise((resolve, reject) => {
      const lane = this.#here(effect.name);
      if (lane === 'misused') return reject(this.#stop.error);
      if (lane.abandoned || this.#stop.error) return;
      if (lane.entry) return this.#stop.because(secondEffect(effect.name, lane.entry));
      lane.entry = new PendingEntry(lane, effect, args, this.#originOf(ask), outcome => {
        lane.entry = undefined;
        if (outcome.kind === 'ok') resolve(outcome.value);
        else reject(errorOf(effect.name, outcome));
      });
      this.#grants.asked();
      this.#rest(lane);
    });
  }

  /** Marks the lane as running, unless it waits for a lane inside it. */
  #resume(lane: ConductedLane): void {
    if (lane.inner === 0) this.#running.add(lane);
    this.#pacer.lanesRun();
  }

  #rest(lane: ConductedLane): void {
    this.#running.delete(lane);
    if (this.#running.size === 0) this.#pacer.arm();
  }

  #decide(): void {
    if (this.#endedLanes.length > 0) this.#reportEndedLanes();
    // No lane runs, so every live lane is parked. That is still true after the start of a long effect, hence the
    // loop.
    while (this.#running.size === 0 && this.#grants.canDecide && !this.#happens && !this.#stop.error)
      this.#stop.guard(() => this.#continue());
  }

  #continue(): void {
    const next = this.#scheduler.next();
    if (typeof next === 'function') this.#trigger(next);
    else this.#grants.grant(next as PendingEntry);
  }

  /** Runs an event outside the context of any lane. No lane continues before it is over. */
  #trigger(happening: Happening): void {
    const result = this.#context.run(undefined, happening);
    if (!(result instanceof Promise)) return;
    this.#happens = true;
    void result.then(
      () => this.#hasHappened(),
      (thrown: unknown) => this.#hasHappened(thrown),
    );
  }

  #hasHappened(thrown?: unknown): void {
    this.#happens = false;
    if (thrown !== undefined)
      this.#stop.guard(() => {
        throw thrown;
      });
    this.#pacer.arm();
  }

  #reportEndedLanes(): void {
    const ended = this.#endedLanes;
    this.#endedLanes = [];
    for (const { name, entries } of ended) this.#stop.guard(() => this.#scheduler.laneEnded(name, entries));
  }

  /** Microtasks are exhausted before an immediate runs, so a lane that still runs does not await an effect. */
  #reportStrays(): void {
    for (const lane of this.#running) if (lane.birth !== 'top') this.#stop.because(strayLane(lane));
  }

  #cancelTree(root: Lane): void {
    for (const lane of root.subtree()) {
      lane.cancelled = true;
      if (lane.entry?.isCancelling) lane.entry.cancel();
    }
  }
}
