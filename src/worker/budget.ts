import type { RunOptions } from '../engine/index.ts';
import type { SpendingLimit } from '../workflow/index.ts';
import type { UnfinishedWork } from './abandon.ts';

/** What a worker may use up for all its tasks, and what one of them may. */
export class WorkerBudget {
  readonly #all: SpendingLimit;
  readonly #each: SpendingLimit;
  #costUsd = 0;
  #tokens = 0;

  constructor({
    budget = {},
    taskBudget = {},
  }: {
    readonly budget?: SpendingLimit | undefined;
    readonly taskBudget?: SpendingLimit | undefined;
  }) {
    this.#all = budget;
    this.#each = taskBudget;
  }

  get costUsd(): number {
    return this.#costUsd;
  }

  get isEmpty(): boolean {
    const { costUsd = 1, tokens = 1 } = this.#left();
    return costUsd <= 0 || tokens <= 0;
  }

  pay({ costUsd, tokens }: Pick<UnfinishedWork, 'costUsd' | 'tokens'>): void {
    this.#costUsd += costUsd ?? 0;
    this.#tokens += tokens;
  }

  /** A task may use up what is left for all of them, and no more than one task may. */
  forOne(): NonNullable<RunOptions['budget']> {
    const unfinished = this.#left();
    const costUsd = least(unfinished.costUsd, this.#each.costUsd);
    const tokens = least(unfinished.tokens, this.#each.tokens);
    return { ...(costUsd === undefined ? {} : { costUsd }), ...(tokens === undefined ? {} : { tokens }) };
  }

  #left(): SpendingLimit {
    const { costUsd, tokens } = this.#all;
    return {
      ...(costUsd === undefined ? {} : { costUsd: costUsd - this.#costUsd }),
      ...(tokens === undefined ? {} : { tokens: tokens - this.#tokens }),
    };
  }
}

const least = (a: number | undefined, b: number | undefined): number | undefined =>
  a === undefined ? b : Math.min(a, b ?? a);
