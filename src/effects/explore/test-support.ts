import { createConductedWorld } from '../conductor/conductor.ts';
import type { World } from '../world.ts';
import { verdictOf } from './fairness.ts';
import type { Perform, Performed, ScheduleVerdict } from './schedule.ts';
import { type ExploringOptions, exploringScheduler } from './scheduler.ts';

/** Root lanes by name. They and their shared state are created again for each schedule. */
export interface Explored {
  readonly lanes: Readonly<Record<string, () => Promise<unknown>>>;
  /** Returns the violated invariant after all lanes have ended. */
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
    const exploring = exploringScheduler({ ...options, policy, time });
    const world = createConductedWorld({
      scheduler: exploring.scheduler,
      pace: 'microtask',
      remembersOrigins: false,
    });
    const { lanes, check } = program(world, { now: () => now });
    const ends = Object.entries(lanes).map(([name, body]) => world.open(name, body));
    const verdict = await Promise.all(ends).then(
      (): ScheduleVerdict => {
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

/** Formats the moves of a schedule: `a read, b write`. */
export const movesOf = ({ trace }: Pick<Performed, 'trace'>): string =>
  trace.map(({ lane, op }) => `${lane} ${op}`).join(', ');
