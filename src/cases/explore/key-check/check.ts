import { conflicts, type Effect, type EffectDefinition, type World } from '../../../effects/index.ts';
import type { Violation } from '../contract.ts';

/** A piece of state that several lanes can touch. */
export interface SharedFact {
  /** Keys that stand for it: an effect that changes it must declare a write of one of them. */
  readonly keys: readonly string[];
  readonly value: string;
}

/** Snapshot of the shared state, by a readable name such as `refs/heads/main` or `the claim of fix`. */
export type SharedFacts = ReadonlyMap<string, SharedFact>;

/** Whether a ref is left out: parked work has refs with unique names that no effect reads. */
export const isKeptApart = (ref: string): boolean => ref.startsWith('refs/reprise/parked/');

interface KeyedChange {
  readonly name: string;
  readonly keys: readonly string[];
}

function changesBetween(before: SharedFacts, after: SharedFacts): readonly KeyedChange[] {
  const changes: KeyedChange[] = [];
  for (const [name, { keys, value }] of before)
    if (after.get(name)?.value !== value) changes.push({ name, keys });
  for (const [name, { keys }] of after) if (!before.has(name)) changes.push({ name, keys });
  return changes;
}

/** Returns the changes that `writes` does not cover. */
const undeclaredAmong = (
  changes: readonly KeyedChange[],
  writes: readonly string[],
): readonly KeyedChange[] => changes.filter(({ keys }) => !conflicts({ writes }, { writes: keys }));

/** Compares what effects change with the writes that they declare. */
export class KeyCheck {
  readonly #look: () => Promise<SharedFacts>;
  #violation: Violation | undefined;

  constructor(look: () => Promise<SharedFacts>) {
    this.#look = look;
  }

  /** First undeclared change. */
  get violation(): Violation | undefined {
    return this.#violation;
  }

  /** Wraps a world so that its effects are checked. Effects must not overlap, or a change could be blamed on the wrong one. */
  world(world: World, step: string): World {
    return {
      effect: definition => world.effect(this.#watched(definition, step)),
      open: (lane, body) => world.open(lane, body),
      fork: body => world.fork(body),
      join: lanes => world.join(lanes),
      cancel: lanes => world.cancel(lanes),
      mailbox: (name, options) => world.mailbox(name, options),
    };
  }

  #watched<Args, Result>(
    definition: EffectDefinition<Args, Result>,
    step: string,
  ): EffectDefinition<Args, Result> {
    const { name, perform } = definition;
    if (touchesNothing(name)) return definition;
    const watched: Effect<Parameters<typeof perform>, Result> = async ([args, cancellation]) => {
      const writes = writesOf(definition, args);
      const before = await this.#look();
      try {
        return await perform(args, cancellation);
      } finally {
        const [first] = undeclaredAmong(changesBetween(before, await this.#look()), writes);
        if (first) this.#violation ??= undeclaredWrite(first, { name, step, writes });
      }
    };
    return { ...definition, perform: (args, cancellation) => watched([args, cancellation]) };
  }
}

/** Whether an effect touches no state that two commands share. */
const touchesNothing = (name: string): boolean => /^(clock|ids|keyboard|lane|mail|receipt)\./.test(name);

const writesOf = <Args, Result>({ keys, awaits }: EffectDefinition<Args, Result>, args: Args) => [
  ...(keys?.(args).writes ?? []),
  ...(awaits?.keys(args).writes ?? []),
];

interface Writer {
  readonly name: string;
  readonly step: string;
  readonly writes: readonly string[];
}

const undeclaredWrite = ({ name: what, keys }: KeyedChange, { name, step, writes }: Writer): Violation => ({
  what: `${undeclared} of ${name}`,
  message: `${name} of ${step} changed ${what} (key ${keys.join(' or ')}), but its keys ${writes.length > 0 ? `only declare writes of ${writes.join(', ')}` : 'declare no writes'}`,
});

const undeclared = 'undeclared write';

/** Whether a failure is about the keys of one effect, so that the schedule does not matter. */
export const isAboutKeys = ({ what }: Pick<Violation, 'what'>): boolean => what.startsWith(`${undeclared} `);
