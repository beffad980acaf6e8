import type { RunOptions } from '../engine/index.ts';
import type { SpendingLimit } from '../workflow/index.ts';
import type { UnfinishedWork } from './abandon.ts';

/** Spending of a worker, with its limits for all tasks together and for each task. */
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

  /** Budget of the next task: the rest of the total, at most the limit of one task. */
  forOne(): NonNullable<RunOptions['budget']> {
    const left = this.#left();
    const costUsd = least(left.costUsd, this.#each.costUsd);
    const tokens = least(left.tokens, this.#each.tokens);
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

/** Whether a run that stopped at `limit` has used up the budget of its task, which has not been raised since. */
export const isUsedUp = (limit: SpendingLimit = {}, taskBudget: SpendingLimit = {}): boolean =>
  isReached(limit.costUsd, taskBudget.costUsd) || isReached(limit.tokens, taskBudget.tokens);

const isReached = (limit: number | undefined, budget: number | undefined): boolean =>
  limit !== undefined && budget !== undefined && limit >= budget;

const least = (a: number | undefined, b: number | undefined): number | undefined =>
  a === undefined ? b : Math.min(a, b ?? a);
