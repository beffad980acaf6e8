import { canonicalJson, type HistoryEvent } from '../../core/index.ts';
import { type Claim, type EventStore, isHeld, type RunSummary } from '../../store/index.ts';
import { dispatcher, workerWorkflow } from '../../worker/index.ts';
import type { ScheduleAttempt, ScheduleSource, Violation } from './contract.ts';
import type { PerformedCase } from './perform.ts';

/** State of the repository after all commands have ended. */
export interface RepositoryEnd {
  /** Target branch of landings. */
  readonly main: string;
  /** Commits that the target branch contains. */
  readonly onMain: ReadonlySet<string>;
  /** Tree id of the target branch. */
  readonly tree: string | undefined;
  /** Commit of each branch, by its name. */
  readonly tips: ReadonlyMap<string, string>;
  /** Paths of the remaining linked worktrees. */
  readonly worktrees: readonly string[];
}

/** Outcome of a schedule. */
export interface ScheduleOutcome {
  readonly repository: RepositoryEnd;
  readonly runs: readonly EndedRun[];
  readonly claims: readonly Claim[];
  /** Highest exit code of the commands. */
  readonly exitCode: number;
}

interface EndedRun {
  readonly summary: RunSummary;
  readonly history: readonly HistoryEvent[];
}

export async function scheduleOutcomeOf(
  store: EventStore | undefined,
  { repository, exitCode }: Pick<ScheduleOutcome, 'repository' | 'exitCode'>,
): Promise<ScheduleOutcome> {
  const summaries = (await store?.list()) ?? [];
  const runs: EndedRun[] = [];
  for (const summary of summaries) runs.push({ summary, history: (await store?.read(summary.runId)) ?? [] });
  return { repository, runs, claims: (await store?.claims.list()) ?? [], exitCode };
}

/** Returns the first rule that the outcome breaks. The rules hold for every schedule. */
export const brokenIn = (outcome: ScheduleOutcome): Violation | undefined =>
  landedTwice(outcome) ?? lostWork(outcome) ?? lostBranch(outcome) ?? leftoversIn(outcome);

function landedTwice({ runs }: ScheduleOutcome): Violation | undefined {
  const landed = new Map<string, string>();
  for (const { summary, history } of runs) {
    const task = taskOf(history);
    if (task === undefined || !history.some(event => isLanded(event))) continue;
    if (landed.has(task))
      return {
        what: 'landed twice',
        message: `two runs landed ${task}: ${landed.get(task)} and ${summary.runId}`,
      };
    landed.set(task, summary.runId);
  }
  return undefined;
}

function lostWork({ runs, claims, repository: { main, onMain } }: ScheduleOutcome): Violation | undefined {
  const lost = (work: string): Violation => ({
    what: 'landed and lost',
    message: `${work} landed, but its commit is not on ${main}`,
  });
  for (const { summary, history } of runs)
    for (const event of history)
      if (event.type === 'landing.ended' && event.data.outcome === 'landed' && event.data.onto === main)
        if (!onMain.has(event.data.commit ?? '')) return lost(taskOf(history) ?? `run ${summary.runId}`);
  for (const { task, state, commit } of claims)
    if (state === 'landed' && commit !== undefined && !onMain.has(commit)) return lost(task);
  return undefined;
}

function lostBranch({ claims, repository: { tips } }: ScheduleOutcome): Violation | undefined {
  for (const { task, state, branch } of claims)
    if (state !== 'landed' && branch !== undefined && !tips.has(branch))
      return {
        what: 'parked and lost',
        message: `${task} was ${state} on ${branch}, but that branch does not exist`,
      };
  return undefined;
}

/** Looks for unfinished runs and claims. A command that reports a failure may leave some. */
function leftoversIn({ runs, claims, exitCode }: ScheduleOutcome): Violation | undefined {
  if (exitCode !== 0) return undefined;
  for (const { summary } of runs)
    if (summary.status === 'running')
      return {
        what: 'run left behind',
        message: `run ${summary.runId} of ${summary.workflow} is abandoned: all commands ended, but the run did not`,
      };
  // A run that waits for a person keeps its claim.
  for (const claim of claims.filter(({ runStatus }) => runStatus !== 'waiting'))
    if (isHeld(claim) || (claim.state === 'held' && claim.runStatus === 'completed'))
      return {
        what: 'claim left behind',
        message: `${claim.task} is still claimed after all commands ended`,
      };
  return undefined;
}

/** Canonical form of an outcome: equal for schedules with equivalent outcomes, independent of names and times. */
export interface OutcomeForms {
  /** Result of the work, which crashes must not change. */
  readonly work: string;
  /** Result of the work with leftover worktrees and the exit code. */
  readonly all: string;
}

export function formsOf({ repository, runs, claims, exitCode }: ScheduleOutcome): OutcomeForms {
  const statuses = runs
    .filter(({ summary }) => summary.workflow !== workerWorkflow)
    .map(({ summary }) => `${summary.workflow} ${summary.status}`);
  const work = {
    tree: repository.tree ?? null,
    tasks: Object.fromEntries(claims.map(({ task, state }) => [task, state])),
    runs: statuses.sort(),
  };
  return {
    work: canonicalJson(work),
    all: canonicalJson({ ...work, worktrees: repository.worktrees.length, exitCode }),
  };
}

const isLanded = (event: HistoryEvent): boolean =>
  event.type === 'landing.ended' && event.data.outcome === 'landed';

function taskOf(history: readonly HistoryEvent[]): string | undefined {
  for (const event of history)
    if (event.type === 'transition.taken' && event.data.from === dispatcher) return event.data.args?.['task'];
  return undefined;
}

const noSuchOrder = 'no such order';
const leftoversFound = 'something left';

/** Whether the rule compares with the outcomes of sequential schedules. */
export const isAboutOrders = (what: string): boolean => what === noSuchOrder || what === leftoversFound;

/** Outcomes of a case when its commands run one after another, in every order. */
export class SequentialOutcomes {
  readonly #work = new Set<string>();
  readonly #all = new Set<string>();
  readonly #acceptsAny: boolean;
  #areKnown = true;
  #isClosed = false;

  constructor({ acceptsAny = false }: { readonly acceptsAny?: boolean | undefined } = {}) {
    this.#acceptsAny = acceptsAny;
  }

  /** Whether every sequential schedule has been played and passed. */
  get areKnown(): boolean {
    return this.#isClosed && this.#areKnown;
  }

  /** Whether there are no more sequential schedules to learn from. */
  get areClosed(): boolean {
    return this.#isClosed;
  }

  learn({ forms, verdict }: PerformedCase): void {
    if (!forms || verdict.kind !== 'passed') this.#areKnown = false;
    else {
      this.#work.add(forms.work);
      this.#all.add(forms.all);
    }
  }

  close(): void {
    this.#isClosed = true;
  }

  /** `isCalm`: no crash or fault was injected that would explain leftovers or a failed command. */
  violation({ work, all }: OutcomeForms, isCalm: boolean): Violation | undefined {
    if (this.#acceptsAny || !this.areKnown) return undefined;
    if (!this.#work.has(work))
      return {
        what: noSuchOrder,
        message: `running the commands one after another, in any order, never gives this outcome: ${work}`,
      };
    if (isCalm && !this.#all.has(all))
      return {
        what: leftoversFound,
        message: `a command failed or left something behind, which never happens when the commands run one after another: ${all}`,
      };
    return undefined;
  }
}

/** Supplies the sequential schedules and collects their outcomes. Closes the collection after the last, or on a failure. */
export class SequentialSource implements ScheduleSource {
  readonly #orders: readonly ScheduleAttempt[];
  readonly #outcomes: SequentialOutcomes;
  #given = 0;
  #learned = 0;

  constructor(orders: readonly ScheduleAttempt[], outcomes: SequentialOutcomes) {
    this.#orders = orders;
    this.#outcomes = outcomes;
  }

  next(): ScheduleAttempt | undefined {
    return this.#orders[this.#given++];
  }

  learn(performed: PerformedCase): void {
    this.#outcomes.learn(performed);
    this.#learned++;
    if (this.#learned === this.#orders.length || performed.verdict.kind === 'failed') this.#outcomes.close();
  }
}
