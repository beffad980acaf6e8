import { expect, onTestFinished } from 'vitest';
import { isHeld } from '../claims.ts';
import { StoreProcess } from './processes.conformance.ts';
import { temporaryStore } from './temporary.conformance.ts';

interface Race {
  readonly processes: number;
  readonly tasks: number;
  readonly rounds: number;
}

/** Task names that one process printed. */
interface Result {
  readonly won: readonly string[];
  readonly lost: readonly string[];
}

/**
 * Lets processes that have all seen the same claims claim all tasks at the same time. In one of five rounds a winner
 * releases its claim at once, so only the token keeps the other processes from a second claim.
 */
export async function raceForTasks({ processes, tasks, rounds }: Race): Promise<void> {
  const { file, store } = await temporaryStore();
  const racers = Array.from(
    { length: processes },
    (_, index) => new StoreProcess('claimant', file, `p${index}`, String(tasks)),
  );
  for (const racer of racers) onTestFinished(() => racer.kill());
  const all = Array.from({ length: tasks }, (_, index) => `task-${index}`).toSorted();

  for (let round = 0; round < rounds; round++) {
    const isKept = round % 5 !== 1;
    await Promise.all(racers.map(racer => racer.printed(2 * round + 1)));
    for (const racer of racers) racer.send(isKept ? 'hold' : 'release at once');
    await Promise.all(racers.map(racer => racer.printed(2 * round + 2)));

    const results = racers.map(racer => racer.lines.at(-1) as unknown as Result);
    expect(results.flatMap(({ won }) => won).toSorted()).toEqual(all);
    expect(results.map(({ won, lost }) => won.length + lost.length)).toEqual(racers.map(() => tasks));
    const claims = await store.claims.list();
    expect(claims.map(({ task, token }) => ({ task, token }))).toEqual(
      all.map(task => ({ task, token: round + 1 })),
    );
    expect(claims.filter(isHeld)).toHaveLength(isKept ? tasks : 0);
    for (const racer of racers) racer.send('end the run');
  }
  for (const racer of racers) racer.finish();
  await Promise.all(racers.map(racer => racer.done()));
}
