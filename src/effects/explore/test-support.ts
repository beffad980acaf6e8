import { createConductedWorld } from '../conductor/conductor.ts';
import type { World } from '../world.ts';
import { verdictOf } from './fairness.ts';
import type { Perform, Performed, Verdict } from './schedule.ts';
import { type ExploringOptions, exploringPlayer } from './scheduler.ts';

/** Lanes at the top by name; they and what they share are made anew for each schedule. */
export interface Explored {
  readonly lanes: Readonly<Record<string, () => Promise<unknown>>>;
  /** What is wrong when all lanes have ended. */
  readonly check?: () => string | undefined;
}

export type ExploredProgram = (world: World, time: { now(): number }) => Explored;

/** Runs one schedule of the program. */
export const performing =
  (program: ExploredProgram, options: Omit<Partial<ExploringOptions>, 'policy' | 'time'> = {}): Perform =>
  async policy => {
    let now = 0;
    const time = {
      advanceTo: (epochMs: number) => {
        now = epochMs;
      },
    };
    const exploring = exploringPlayer({ ...options, policy, time });
    const world = createConductedWorld({
      player: exploring.player,
      pace: 'microtask',
      remembersOrigins: false,
    });
    const { lanes, check } = program(world, { now: () => now });
    const ends = Object.entries(lanes).map(([name, body]) => world.open(name, body));
    const verdict = await Promise.all(ends).then(
      (): Verdict => {
        const wrong = check?.();
        return wrong === undefined
          ? { kind: 'passed' }
          : { kind: 'failed', what: 'invariant', message: wrong };
      },
      (error: unknown) => verdictOf(error),
    );
    await Promise.allSettled(ends);
    const left = exploring.left();
    await world.finish().catch(() => {});
    return { trace: exploring.trace, left, entries: exploring.entries(), verdict };
  };

/** `a read, b write`: the moves of a schedule. */
export const movesOf = ({ trace }: Pick<Performed, 'trace'>): string =>
  trace.map(({ lane, op }) => `${lane} ${op}`).join(', ');
