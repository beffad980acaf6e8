import type { PerformedCase } from '../../cases/explore/perform.ts';
import type { Theatre } from './theatre.ts';

/**
 * How many schedules are played at once at most: the same on every machine, so that the same come next. With more, the one
 * thread that does all else than git would be what they wait for.
 */
const mostAtOnce = 3;

/** Theatres of one case, in each of which a schedule can be played while others are played in the others. */
export class Theatres {
  readonly #first: Theatre;
  readonly #all: Promise<Theatre>[];
  readonly #free: Promise<Theatre>[];

  constructor(first: Theatre) {
    this.#first = first;
    this.#all = [Promise.resolve(first)];
    this.#free = [...this.#all];
  }

  /** Begins to prepare the others. */
  prepare(): void {
    while (this.#first.another && this.#all.length < mostAtOnce) {
      const other = this.#first.another();
      // Whoever wants to play there hears of it.
      other.catch(() => {});
      this.#all.push(other);
      this.#free.push(other);
    }
  }

  /** One in which nothing is played. The first comes first: it is ready. */
  take(): Promise<Theatre> | undefined {
    return this.#free.shift();
  }

  giveBack(theatre: Theatre): void {
    this.#free.unshift(Promise.resolve(theatre));
  }

  /** Nothing is prepared any more. */
  async settle(): Promise<void> {
    await Promise.allSettled(this.#all);
  }
}

interface PlayOptions<T> {
  /** What is to be played next. `undefined` when there is nothing, before what is under way is learned. */
  next(underWay: readonly T[]): T | undefined;
  perform(what: T, theatre: Theatre): Promise<PerformedCase>;
  /** How it went. */
  learn(what: T, performed: PerformedCase): void;
}

interface UnderWay<T> {
  readonly what: T;
  readonly theatre: Theatre;
  readonly performing: Promise<PerformedCase>;
}

/**
 * Plays as many at once as there are theatres. They are learned in the order in which they were begun, so that chance has
 * no part in which come next.
 */
export async function playAtOnce<T>(
  theatres: Theatres,
  { next, perform, learn }: PlayOptions<T>,
): Promise<void> {
  const underWay: UnderWay<T>[] = [];
  const begin = async (): Promise<boolean> => {
    const theatre = await theatres.take();
    const what = theatre && next(underWay.map(each => each.what));
    if (theatre && what === undefined) theatres.giveBack(theatre);
    if (!theatre || what === undefined) return false;
    const performing = perform(what, theatre);
    // Whoever waits for another one first hears of it later.
    performing.catch(() => {});
    underWay.push({ what, theatre, performing });
    return true;
  };
  try {
    for (;;) {
      if (await begin()) continue;
      const first = underWay[0];
      if (!first) return;
      learn(first.what, await first.performing);
      underWay.shift();
      // Not as soon as it has ended: how many are begun before one is learned is not up to which ends first.
      theatres.giveBack(first.theatre);
    }
  } finally {
    await Promise.allSettled([...underWay.map(({ performing }) => performing), theatres.settle()]);
  }
}
