import { createConductedWorld } from '../effects/conductor/index.ts';
import {
  exploringScheduler,
  NoProgressError,
  type Perform,
  type Policy,
  ScheduleCut,
  type ScheduleVerdict,
  verdictOf,
} from '../effects/explore/index.ts';
import { conflicts, type LaneRef, type Mailbox, type World } from '../effects/index.ts';

interface PerformedEffect {
  readonly name: string;
  readonly writes: readonly string[];
}

/** Compares the state behind watched keys before and after each effect: only an effect that writes a key may change it. */
class WatchedKeys {
  readonly #looks = new Map<string, () => unknown>();
  #broken: Extract<ScheduleVerdict, { kind: 'failed' }> | undefined;

  /** First undeclared write. */
  get broken(): ScheduleVerdict | undefined {
    return this.#broken;
  }

  watch(key: string, look: () => unknown): void {
    this.#looks.set(key, look);
  }

  /** Stops a schedule after an undeclared write. */
  until(policy: Policy): Policy {
    const choose: Policy['choose'] = point => {
      if (this.#broken) throw new Error(this.#broken.message);
      return policy.choose(point);
    };
    return { ...policy, choose };
  }

  around<Result>(
    performance: PerformedEffect,
    perform: () => Result | Promise<Result>,
  ): Result | Promise<Result> {
    return this.#looks.size === 0 ? perform() : this.#watched(performance, perform);
  }

  async #watched<Result>(
    { name, writes }: PerformedEffect,
    perform: () => Result | Promise<Result>,
  ): Promise<Result> {
    const before = this.#look();
    try {
      return await perform();
    } finally {
      const after = this.#look();
      for (const [key, value] of before)
        if (after.get(key) !== value && !conflicts({ writes }, { writes: [key] }))
          this.#broken ??= {
            kind: 'failed',
            what: 'undeclared write',
            message: `${name} changed ${key}, but ${writes.length > 0 ? `only declares writes of ${writes.join(', ')}` : 'declares no writes'}`,
          };
    }
  }

  #look(): ReadonlyMap<string, string> {
    return new Map([...this.#looks].map(([key, look]) => [key, JSON.stringify(look()) ?? 'undefined']));
  }
}

type KeysOf<Args> = readonly string[] | ((args: Args) => readonly string[]);

/** An access to shared state. Other lanes may run between two effects of a lane. */
export interface ExploredEffect<Args, Result> {
  readonly name: string;
  /** Keys of the state that it reads. A key is any string; one that ends with `:` stands for all keys with that prefix. */
  readonly reads?: KeysOf<Args>;
  /** Keys of the state that it changes. The order of effects without a common key, or that only read, does not matter. */
  readonly writes?: KeysOf<Args>;
  /** Condition that the effect waits for. May only use the state behind its keys. */
  readonly when?: (args: Args) => boolean;
  readonly perform: (args: Args) => Result | Promise<Result>;
}

/** Building blocks of an explored program. */
export interface ExploredWorld {
  /** Adds code that runs concurrently with the other lanes. */
  lane(name: string, body: () => Promise<unknown>): void;
  effect<Result, Args = void>(definition: ExploredEffect<Args, Result>): (args: Args) => Promise<Result>;
  /** Starts a lane below the current one. It must be joined. */
  fork(body: () => Promise<void>): LaneRef;
  join(lanes: readonly LaneRef[]): Promise<void>;
  mailbox<Message>(name: string): Mailbox<Message>;
  /**
   * Declares the state behind a key; `look` returns it as data. An effect that changes it without declaring a write of the
   * key is a failure, because orders that matter would be skipped.
   */
  watch(key: string, look: () => unknown): void;
  /** Milliseconds since the start. Time passes only while a lane sleeps, and then at any moment. */
  now(): Promise<number>;
  sleep(ms: number): Promise<void>;
}

/**
 * Creates the program. All shared state belongs in here, because `setup` runs again for each schedule. The returned
 * function is called when all lanes have ended, and throws if an invariant does not hold.
 */
export type Setup = (world: ExploredWorld) => undefined | (() => void | Promise<void>) | void;

/** Returns a function that performs one schedule of a program. */
export const performingSetup =
  (setup: Setup): Perform =>
  async policy => {
    let now = 0;
    const time = {
      advanceTo: (ms: number) => {
        now = ms;
      },
    };
    const watched = new WatchedKeys();
    const exploring = exploringScheduler({ policy: watched.until(policy), time });
    const world = createConductedWorld({
      scheduler: exploring.scheduler,
      pace: 'microtask',
      remembersOrigins: false,
    });
    const lanes: [string, () => Promise<unknown>][] = [];
    const check = setup(worldOf(world, { now: () => now, lanes, watched }));
    const ends = await Promise.allSettled(lanes.map(([name, body]) => world.open(name, body)));
    const verdict = watched.broken ?? (await verdictFor(ends, check ?? undefined));
    const left = exploring.left();
    await world.finish().catch(() => {});
    return { trace: exploring.trace, left, entries: exploring.entries(), verdict };
  };

interface WorldContext {
  readonly now: () => number;
  readonly lanes: [string, () => Promise<unknown>][];
  readonly watched: WatchedKeys;
}

function worldOf(world: World, { now, lanes, watched }: WorldContext): ExploredWorld {
  const clock = world.effect<void, number>({ name: 'clock.now', span: 'short', perform: now });
  const sleepUntil = world.effect<number, void>({ name: 'clock.sleep', span: 'long', perform: () => {} });
  return {
    lane: (name, body) => void lanes.push([name, body]),
    effect: ({ name, reads = [], writes = [], when, perform }) =>
      world.effect({
        name,
        span: 'short',
        keys: args => ({ reads: keysOf(reads, args), writes: keysOf(writes, args) }),
        perform: args => watched.around({ name, writes: keysOf(writes, args) }, () => perform(args)),
        ...(when ? { enabled: when } : {}),
      }),
    fork: body => world.fork(body),
    join: refs => world.join(refs),
    mailbox: name => world.mailbox(name),
    watch: (key, look) => watched.watch(key, look),
    now: () => clock(),
    sleep: async ms => sleepUntil(now() + ms),
  };
}

const keysOf = <Args>(keys: KeysOf<Args>, args: Args): readonly string[] =>
  typeof keys === 'function' ? keys(args) : keys;

/** Prefers an error that stopped all lanes to one that a single lane threw. */
async function verdictFor(
  ends: readonly PromiseSettledResult<unknown>[],
  check: (() => void | Promise<void>) | undefined,
): Promise<ScheduleVerdict> {
  const thrown = ends.flatMap(end => (end.status === 'rejected' ? [end.reason as unknown] : []));
  const stopped =
    thrown.find(error => error instanceof ScheduleCut || error instanceof NoProgressError) ?? thrown[0];
  if (stopped !== undefined) return verdictOf(stopped);
  try {
    await check?.();
    return { kind: 'passed' };
  } catch (error) {
    return {
      kind: 'failed',
      what: 'invariant',
      message: error instanceof Error ? error.message : String(error),
    };
  }
}
