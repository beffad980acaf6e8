import type { HistoryEvent } from '../../core/events.ts';
import { canonicalJson } from '../../core/json.ts';
import { type Claim, isHeld } from '../../store/claims.ts';
import type { EventStore, RunSummary } from '../../store/port.ts';
import { dispatcher, workerWorkflow } from '../../worker/contract.ts';
import type { Attempt, Source, Violation } from './contract.ts';
import type { PerformedCase } from './perform.ts';

/** How a repository stands when all steps are over. */
export interface RepositoryEnd {
  /** The branch that is landed on. */
  readonly main: string;
  /** The commits that it leads to. */
  readonly onMain: ReadonlySet<string>;
  /** The id of all that is in its last commit. */
  readonly tree: string | undefined;
  /** Where the branches are. */
  readonly tips: ReadonlyMap<string, string>;
  /** Paths of those that are left, beside the first. */
  readonly worktrees: readonly string[];
}

/** What a schedule came to. */
export interface Ending {
  readonly repository: RepositoryEnd;
  readonly runs: readonly EndedRun[];
  readonly claims: readonly Claim[];
  /** Of the steps, the worst. */
  readonly exitCode: number;
}

interface EndedRun {
  readonly summary: RunSummary;
  readonly history: readonly HistoryEvent[];
}

export async function endingOf(
  store: EventStore | undefined,
  { repository, exitCode }: Pick<Ending, 'repository' | 'exitCode'>,
): Promise<Ending> {
  const summaries = (await store?.list()) ?? [];
  const runs: EndedRun[] = [];
  for (const summary of summaries) runs.push({ summary, history: (await store?.read(summary.runId)) ?? [] });
  return { repository, runs, claims: (await store?.claims.list()) ?? [], exitCode };
}

/** What must not be when all steps are over, in whatever order things went. */
export const brokenIn = (ending: Ending): Violation | undefined =>
  landedTwice(ending) ?? lostWork(ending) ?? lostBranch(ending) ?? leftBehind(ending);

function landedTwice({ runs }: Ending): Violation | undefined {
  const landed = new Map<string, string>();
  for (const { summary, history } of runs) {
    const task = taskOf(history);
    if (task === undefined || !history.some(event => isLanded(event))) continue;
    if (landed.has(task))
      return {
        what: 'landed twice',
        message: `${task} was landed by two runs: ${landed.get(task)} and ${summary.runId}`,
      };
    landed.set(task, summary.runId);
  }
  return undefined;
}

function lostWork({ runs, claims, repository: { main, onMain } }: Ending): Violation | undefined {
  const lost = (who: string): Violation => ({
    what: 'landed and lost',
    message: `${who} landed, and its commit is not on ${main}`,
  });
  for (const { summary, history } of runs)
    for (const event of history)
      if (event.type === 'landing.ended' && event.data.outcome === 'landed' && event.data.onto === main)
        if (!onMain.has(event.data.commit ?? '')) return lost(taskOf(history) ?? `run ${summary.runId}`);
  for (const { task, state, commit } of claims)
    if (state === 'landed' && commit !== undefined && !onMain.has(commit)) return lost(task);
  return undefined;
}

function lostBranch({ claims, repository: { tips } }: Ending): Violation | undefined {
  for (const { task, state, branch } of claims)
    if (state !== 'landed' && branch !== undefined && !tips.has(branch))
      return { what: 'parked and lost', message: `${task} was ${state} on ${branch}, which does not exist` };
  return undefined;
}

/** Of a step that failed, and said so, something may be left. */
function leftBehind({ runs, claims, exitCode }: Ending): Violation | undefined {
  if (exitCode !== 0) return undefined;
  for (const { summary } of runs)
    if (summary.status === 'running')
      return {
        what: 'run left behind',
        message: `run ${summary.runId} of ${summary.workflow} has not ended, and nobody is at work on it`,
      };
  for (const claim of claims)
    if (isHeld(claim) || (claim.state === 'held' && claim.runStatus === 'completed'))
      return { what: 'claim left behind', message: `${claim.task} is claimed, and nobody is at work on it` };
  return undefined;
}

/** What is the same for all schedules that end alike, whoever did what and when. */
export interface Forms {
  /** What became of the work: it does not depend on crashes either. */
  readonly work: string;
  /** Also what was left behind, and what the steps said about it. */
  readonly all: string;
}

export function formsOf({ repository, runs, claims, exitCode }: Ending): Forms {
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
const somethingLeft = 'something left';

/** Whether it can be told only by what the steps come to one after another. */
export const isAboutOrders = (what: string): boolean => what === noSuchOrder || what === somethingLeft;

/** What a case comes to when its steps run one after another, in every order of them. */
export class Endings {
  readonly #work = new Set<string>();
  readonly #all = new Set<string>();
  #areKnown = true;
  #isClosed = false;

  /** Whether all orders came to something. */
  get areKnown(): boolean {
    return this.#isClosed && this.#areKnown;
  }

  /** Whether there are no more orders to be learnt from. */
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

  /** There are no more orders. */
  close(): void {
    this.#isClosed = true;
  }

  /** `isCalm`: nothing has happened that would explain why something was left behind, or why a step failed. */
  violation({ work, all }: Forms, isCalm: boolean): Violation | undefined {
    if (!this.areKnown) return undefined;
    if (!this.#work.has(work))
      return {
        what: noSuchOrder,
        message: `what it came to is not what any order of the steps, one after another, comes to: ${work}`,
      };
    if (isCalm && !this.#all.has(all))
      return {
        what: somethingLeft,
        message: `a step failed, or something was left, that no order of the steps, one after another, leaves: ${all}`,
      };
    return undefined;
  }
}

/** Each order of the steps, and what it comes to. Nothing is compared before all are known, or one fails. */
export class OneAfterAnother implements Source {
  readonly #orders: readonly Attempt[];
  readonly #endings: Endings;
  #given = 0;
  #learned = 0;

  constructor(orders: readonly Attempt[], endings: Endings) {
    this.#orders = orders;
    this.#endings = endings;
  }

  next(): Attempt | undefined {
    return this.#orders[this.#given++];
  }

  learn(performed: PerformedCase): void {
    this.#endings.learn(performed);
    this.#learned++;
    if (this.#learned === this.#orders.length || performed.verdict.kind === 'failed') this.#endings.close();
  }
}
