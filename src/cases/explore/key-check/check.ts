import { conflicts, type Effect, type EffectDefinition } from '../../../effects/effect.ts';
import type { World } from '../../../effects/world.ts';
import type { Violation } from '../contract.ts';

/** Something that more than one lane could touch. */
export interface Fact {
  /** Whoever changes it has to say that it writes one of these. */
  readonly keys: readonly string[];
  readonly value: string;
}

/** What lanes share, as it is at one moment, by what it is called for people: `refs/heads/main`, `the claim fix`. */
export type SharedState = ReadonlyMap<string, Fact>;

/** Kept under a name that says what it is, so that nobody keeps anything else there; no effect looks at it. */
export const isKeptApart = (ref: string): boolean => ref.startsWith('refs/reprise/parked/');

interface Change {
  readonly name: string;
  readonly keys: readonly string[];
}

function changesBetween(before: SharedState, after: SharedState): readonly Change[] {
  const changes: Change[] = [];
  for (const [name, { keys, value }] of before)
    if (after.get(name)?.value !== value) changes.push({ name, keys });
  for (const [name, { keys }] of after) if (!before.has(name)) changes.push({ name, keys });
  return changes;
}

/** What was changed by somebody who writes no more than this. */
const undeclaredAmong = (changes: readonly Change[], writes: readonly string[]): readonly Change[] =>
  changes.filter(({ keys }) => !conflicts({ writes }, { writes: keys }));

/** Compares what effects change with what they say that they write. */
export class KeyCheck {
  readonly #look: () => Promise<SharedState>;
  #violation: Violation | undefined;

  constructor(look: () => Promise<SharedState>) {
    this.#look = look;
  }

  /** The first of what was changed by an effect that does not say so. */
  get violation(): Violation | undefined {
    return this.#violation;
  }

  /** A world whose effects are watched. For a conductor: no two of them may be under way at once. */
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

/** Nothing is behind them that lanes of two steps could share. */
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

const undeclaredWrite = ({ name: what, keys }: Change, { name, step, writes }: Writer): Violation => ({
  what: `${undeclared} of ${name}`,
  message: `${name} of ${step} changed ${what}, which is ${keys.join(' or ')}; it says that it writes ${writes.join(', ') || 'nothing'}`,
});

const undeclared = 'undeclared write';

/** Whether a failure is about an effect by itself, whatever the order was. */
export const isAboutKeys = ({ what }: Pick<Violation, 'what'>): boolean => what.startsWith(`${undeclared} `);
