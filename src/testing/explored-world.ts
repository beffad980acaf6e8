import { createConductedWorld } from '../effects/conductor/conductor.ts';
import { conflicts } from '../effects/effect.ts';
import { Stuck, verdictOf } from '../effects/explore/fairness.ts';
import { Cut, type Perform, type Policy, type Verdict } from '../effects/explore/schedule.ts';
import { exploringPlayer } from '../effects/explore/scheduler.ts';
import type { LaneRef, Mailbox, World } from '../effects/world.ts';

interface Performance {
  readonly name: string;
  readonly writes: readonly string[];
}

/** Looks at what stands behind keys before and after each effect: only who writes a key may change it. */
class WatchedKeys {
  readonly #looks = new Map<string, () => unknown>();
  #broken: Extract<Verdict, { kind: 'failed' }> | undefined;

  /** What was changed by an effect that does not say so. */
  get broken(): Verdict | undefined {
    return this.#broken;
  }

  watch(key: string, look: () => unknown): void {
    this.#looks.set(key, look);
  }

  /** What comes after it is of no interest. */
  until(policy: Policy): Policy {
    const choose: Policy['choose'] = point => {
      if (this.#broken) throw new Error(this.#broken.message);
      return policy.choose(point);
    };
    return { ...policy, choose };
  }

  around<Result>(
    performance: Performance,
    perform: () => Result | Promise<Result>,
  ): Result | Promise<Result> {
    return this.#looks.size === 0 ? perform() : this.#watched(performance, perform);
  }

  async #watched<Result>(
    { name, writes }: Performance,
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
            message: `${name} changed ${key}, and says that it writes ${writes.join(', ') || 'nothing'}`,
          };
    }
  }

  #look(): ReadonlyMap<string, string> {
    return new Map([...this.#looks].map(([key, look]) => [key, JSON.stringify(look()) ?? 'undefined']));
  }
}

type KeysOf<Args> = readonly string[] | ((args: Args) => readonly string[]);

/** Something that lanes do to what they share. Between two effects of a lane, any other lane may go on. */
export interface ExploredEffect<Args, Result> {
  readonly name: string;
  /** What it looks at. A key is any text; one that ends with `:` stands for all that begin with it. */
  readonly reads?: KeysOf<Args>;
  /** What it changes. Effects that have no key in common, or only read, may come in any order. */
  readonly writes?: KeysOf<Args>;
  /** It waits until this is true. May look only at what it reads and writes. */
  readonly when?: (args: Args) => boolean;
  readonly perform: (args: Args) => Result | Promise<Result>;
}

/** What a program that is explored is made of. */
export interface ExploredWorld {
  /** Code that runs beside that of other lanes. */
  lane(name: string, body: () => Promise<unknown>): void;
  effect<Result, Args = void>(definition: ExploredEffect<Args, Result>): (args: Args) => Promise<Result>;
  /** Starts a lane below the current one, to be joined. */
  fork(body: () => Promise<void>): LaneRef;
  join(lanes: readonly LaneRef[]): Promise<void>;
  mailbox<Message>(name: string): Mailbox<Message>;
  /**
   * What stands behind a key, as data: an effect that changes it without saying that it writes the key is a failure, because
   * orders that matter would not be seen.
   */
  watch(key: string, look: () => unknown): void;
  /** Milliseconds since the beginning. Time passes only while somebody sleeps, and then at any moment. */
  now(): Promise<number>;
  sleep(ms: number): Promise<void>;
}

/**
 * Makes the program: everything that lanes share belongs in here, because it is made anew for each schedule. What it
 * gives back is called when all lanes have ended, and throws if something is not as it must be.
 */
export type Setup = (world: ExploredWorld) => undefined | (() => void | Promise<void>) | void;

/** Performs schedules of a program. */
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
    const exploring = exploringPlayer({ policy: watched.until(policy), time });
    const world = createConductedWorld({
      player: exploring.player,
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

interface Surroundings {
  readonly now: () => number;
  readonly lanes: [string, () => Promise<unknown>][];
  readonly watched: WatchedKeys;
}

function worldOf(world: World, { now, lanes, watched }: Surroundings): ExploredWorld {
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

/** What stopped all lanes says more than what one of them threw. */
async function verdictFor(
  ends: readonly PromiseSettledResult<unknown>[],
  check: (() => void | Promise<void>) | undefined,
): Promise<Verdict> {
  const thrown = ends.flatMap(end => (end.status === 'rejected' ? [end.reason as unknown] : []));
  const stopped = thrown.find(error => error instanceof Cut || error instanceof Stuck) ?? thrown[0];
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
