import { existsSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import type { HistoryEvent } from '../../src/core/events.ts';
import { digestsOf } from '../../src/engine/history/digest.ts';
import { unitOfEvent } from '../../src/engine/state/graph.ts';

/** A run whose steps leave a mark outside of the store each time that an attempt begins to work. */
export interface MarkedRun {
  readonly folder: string;
  history(): Promise<readonly HistoryEvent[]>;
}

/** Attempts whose success is part of a history. */
const completed = (events: readonly HistoryEvent[]): string[] =>
  events.flatMap(event =>
    event.type === 'step.completed' ? [`${unitOfEvent(event)}#${event.attempt ?? 1}`] : [],
  );

/** How often each attempt of each step began to work. */
function marksOf({ folder }: MarkedRun): ReadonlyMap<string, number> {
  const counts = new Map<string, number>();
  const file = join(folder, 'marks');
  if (!existsSync(file)) return counts;
  for (const mark of readFileSync(file, 'utf8').split('\n').filter(Boolean))
    counts.set(mark, (counts.get(mark) ?? 0) + 1);
  return counts;
}

/** What must hold once a run has been killed, perhaps again, and has come to its end. */
export class Promises {
  readonly #kept = new Map<string, number>();
  readonly #run: MarkedRun;
  readonly #digest: string;

  /** `digest`: of the outcome without a crash. */
  constructor(run: MarkedRun, digest: string) {
    this.#run = run;
    this.#digest = digest;
  }

  /** Called right after a kill: what is finished now must not be done again. */
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
        `${context}: the run came to another end:\n${history.map(e => JSON.stringify(e)).join('\n')}`,
      );
    const marks = marksOf(this.#run);
    for (const [attempt, count] of this.#kept) {
      if (marks.get(attempt) !== count) throw new Error(`${context}: ${attempt} was finished and ran again`);
    }
  }

  /** After a single kill of the first life, finished means done exactly once. */
  expectOnce(context: string): void {
    for (const [attempt, count] of this.#kept)
      if (count !== 1) throw new Error(`${context}: ${attempt} ran ${count} times`);
  }
}
