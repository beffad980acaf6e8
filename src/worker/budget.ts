import type { Usage } from '../agents/index.ts';
import { exhaustedWorkers } from '../core/index.ts';
import type { RunOptions } from '../engine/index.ts';
import type { SpendingLimit } from '../workflow/index.ts';

interface PurseOptions {
  /** Spending limit of all workers of the process together. */
  readonly budget?: SpendingLimit | undefined;
  /** Number of tasks that all workers of the process take together. */
  readonly maxTasks?: number | undefined;
}

interface Amount {
  readonly costUsd: number;
  readonly tokens: number;
}

const nothing: Amount = { costUsd: 0, tokens: 0 };

const plus = (a: Amount, b: Amount): Amount => ({
  costUsd: a.costUsd + b.costUsd,
  tokens: a.tokens + b.tokens,
});

/**
 * Limits that the workers of a process share. Sessions report what they spend while they run. Workers learn through
 * effects and a signal that a limit is reached, because lanes share no state.
 */
export class Purse {
  readonly #budget: SpendingLimit;
  readonly #maxTasks: number;
  readonly #empty = new AbortController();
  /** Spending of runs according to their histories. It includes what other processes have spent on them. */
  readonly #paid = new Map<string, Amount>();
  /** Sum of `#paid`. */
  #total = nothing;
  /** Spending that the sessions of each worker have reported and no history contains yet. */
  readonly #spent = new Map<string, Amount>();
  /** Workers that have a task or look for one. */
  readonly #busy = new Set<string>();
  #tasks = 0;

  constructor({ budget = {}, maxTasks = Number.POSITIVE_INFINITY }: PurseOptions = {}) {
    this.#budget = budget;
    this.#maxTasks = maxTasks;
  }

  /** Aborts when the workers have spent more than their budget. */
  get signal(): AbortSignal {
    return this.#empty.signal;
  }

  get hasBudget(): boolean {
    return this.#budget.costUsd !== undefined || this.#budget.tokens !== undefined;
  }

  /** Returns the limit that keeps the worker from taking another task, if one does. */
  reached(worker: string): 'max-tasks' | 'budget' | undefined {
    const { costUsd = 1, tokens = 1 } = this.#left();
    if (this.signal.aborted || costUsd <= 0 || tokens <= 0) return 'budget';
    this.#busy.delete(worker);
    if (this.#tasks + this.#busy.size >= this.#maxTasks) return 'max-tasks';
    this.#busy.add(worker);
    return undefined;
  }

  /** Lets another worker take the task that this one found none for. */
  leave(worker: string): void {
    this.#busy.delete(worker);
  }

  countTask(): void {
    this.#tasks++;
  }

  spend(worker: string, { inputTokens, outputTokens, costUsd }: Usage): void {
    if (!this.hasBudget) return;
    const amount = { costUsd: costUsd ?? 0, tokens: inputTokens + outputTokens };
    this.#spent.set(worker, plus(this.#spent.get(worker) ?? nothing, amount));
    this.#check();
  }

  /** Replaces what the worker's sessions reported by what the history of the run says. */
  pay(worker: string, runId: string, spent: Amount): void {
    if (!this.hasBudget) return;
    this.refund(runId);
    this.#spent.delete(worker);
    this.#paid.set(runId, plus(nothing, spent));
    this.#total = plus(this.#total, spent);
    this.#check();
  }

  /** Forgets a run that another process continues. */
  refund(runId: string): void {
    const { costUsd, tokens } = this.#paid.get(runId) ?? nothing;
    this.#paid.delete(runId);
    this.#total = plus(this.#total, { costUsd: -costUsd, tokens: -tokens });
  }

  /** Budget of a run: the rest of the total, at most the limit of one task. What the run has spent before counts. */
  forOne(taskBudget: SpendingLimit = {}, runId = ''): NonNullable<RunOptions['budget']> {
    const left = this.#left();
    const before = this.#paid.get(runId) ?? nothing;
    const costUsd = least(left.costUsd, before.costUsd, taskBudget.costUsd);
    const tokens = least(left.tokens, before.tokens, taskBudget.tokens);
    return { ...(costUsd === undefined ? {} : { costUsd }), ...(tokens === undefined ? {} : { tokens }) };
  }

  #check(): void {
    const { costUsd = 0, tokens = 0 } = this.#left();
    if (costUsd < 0 || tokens < 0) this.#empty.abort(exhaustedWorkers);
  }

  #left(): SpendingLimit {
    const { costUsd, tokens } = this.#budget;
    const spent = [...this.#spent.values()].reduce(plus, this.#total);
    return {
      ...(costUsd === undefined ? {} : { costUsd: costUsd - spent.costUsd }),
      ...(tokens === undefined ? {} : { tokens: tokens - spent.tokens }),
    };
  }
}

/** Whether a run that stopped at `limit` has used up the budget of its task, which has not been raised since. */
export const isUsedUp = (limit: SpendingLimit = {}, taskBudget: SpendingLimit = {}): boolean =>
  isReached(limit.costUsd, taskBudget.costUsd) || isReached(limit.tokens, taskBudget.tokens);

const isReached = (limit: number | undefined, budget: number | undefined): boolean =>
  limit !== undefined && budget !== undefined && limit >= budget;

const least = (left: number | undefined, before: number, limit: number | undefined): number | undefined =>
  left === undefined ? limit : Math.min(Math.max(0, left) + before, limit ?? Number.POSITIVE_INFINITY);
