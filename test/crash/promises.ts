import { existsSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import type { HistoryEvent } from '../../src/core/events.ts';
import { digestsOf } from '../../src/engine/history/digest.ts';
import { unitOfEvent } from '../../src/engine/state/graph.ts';

/** A run whose steps leave a mark outside of the store each time an attempt starts. */
export interface MarkedRun {
  readonly folder: string;
  history(): Promise<readonly HistoryEvent[]>;
}

/** Returns the attempts that a history records as completed. */
const completed = (events: readonly HistoryEvent[]): string[] =>
  events.flatMap(event =>
    event.type === 'step.completed' ? [`${unitOfEvent(event)}#${event.attempt ?? 1}`] : [],
  );

/** Returns how often each attempt of each step started. */
function marksOf({ folder }: MarkedRun): ReadonlyMap<string, number> {
  const counts = new Map<string, number>();
  const file = join(folder, 'marks');
  if (!existsSync(file)) return counts;
  for (const mark of readFileSync(file, 'utf8').split('\n').filter(Boolean))
    counts.set(mark, (counts.get(mark) ?? 0) + 1);
  return counts;
}

/** Guarantees that hold for a run that was killed, perhaps more than once, and has ended. */
export class Promises {
  readonly #kept = new Map<string, number>();
  readonly #run: MarkedRun;
  readonly #digest: string;

  /** `digest` is the digest of the outcome without a crash. */
  constructor(run: MarkedRun, digest: string) {
    this.#run = run;
    this.#digest = digest;
  }

  /** Call right after a kill: attempts that have completed must not run again. */
  async remember(): Promise<void> {
    const marks = marksOf(this.#run);
    for (const attempt of completed(await this.#run.history())) {
      const count = marks.get(attempt);
      if (count !== undefined && !this.#kept.has(attempt)) this.#kept.set(attempt, count);
    }
  }

  async check(context: string): Promise<void> {
    const history = await this.#run.history();
    const { outcome } = digestsOf(history);
    if (outcome !== this.#digest)
      throw new Error(
        `${context}: the outcome of the run has changed:\n${history.map(e => JSON.stringify(e)).join('\n')}`,
      );
    const marks = marksOf(this.#run);
    for (const [attempt, count] of this.#kept) {
      if (marks.get(attempt) !== count) throw new Error(`${context}: ${attempt} had completed and ran again`);
    }
  }

  /** Call after a single kill of the first process: a completed attempt ran exactly once. */
  expectOnce(context: string): void {
    for (const [attempt, count] of this.#kept)
      if (count !== 1) throw new Error(`${context}: ${attempt} ran ${count} times`);
  }
}
