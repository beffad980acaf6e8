import { toEpochMs } from '../../core/index.ts';
import type { ParkedWork } from '../../git/workspace/index.ts';
import type { Claim, RunSummary, WorkerRecord } from '../../store/index.ts';
import { knownCost, type Spending } from '../../view/index.ts';
import type { TaskProblem, TaskWithStatus } from '../../worker/tasks/index.ts';

/** State of workers, tasks and locks at one moment. */
export interface StatusFacts extends TaskFacts {
  readonly workers: readonly WorkerFact[];
  /** Locks that are held, abandoned or waited for. */
  readonly locks: readonly LockFact[];
  readonly abandoned: readonly AbandonedRun[];
  readonly parked: readonly ParkedFact[];
}

export interface TaskFacts {
  /** Branch of the workers. */
  readonly branch: string;
  /** Commit of that branch; `null` if it has none. */
  readonly main: string | null;
  readonly tasks: readonly TaskWithStatus[];
  readonly problems: readonly TaskProblem[];
  /** Task files of the checkout that are missing or different on the branch. */
  readonly uncommitted: readonly UncommittedTask[];
  /** Instruction for adding a task. */
  readonly howToAdd: string;
}

export interface UncommittedTask {
  readonly id: string;
  /** Path relative to the root of the repository. */
  readonly file: string;
  /** Whether the branch has an older version of the file. */
  readonly isKnown: boolean;
}

export interface WorkerFact {
  readonly worker: WorkerRecord;
  /** `stalled` means that the process lives but does nothing: it was stopped, or its container is paused. */
  readonly life: 'alive' | 'stalled' | 'dead';
  /** Time for which it has been stalled. */
  readonly stalledMs?: number | undefined;
  /** Spending on all its tasks, including the current one. */
  readonly spent: Spending;
  readonly lane?: LaneFact | undefined;
}

/** Current activity of the run of a worker. */
export interface LaneFact {
  /** Active step; `undefined` between steps. */
  readonly step: string | undefined;
  /** Log line of the last event. */
  readonly doing: string | undefined;
}

export interface LockFact {
  /** `agent` is one concurrency slot of an agent. */
  readonly kind: 'agent' | 'repository';
  readonly name: string;
  /** Number of the slot, from 1. */
  readonly place?: number | undefined;
  /** `abandoned` means that its holder died. The next process that asks gets the lock. */
  readonly state: 'held' | 'abandoned' | 'free';
  readonly holder?: string | undefined;
  /** Says that the holder is stalled, and how to continue or end it. */
  readonly stalled?: string | undefined;
  readonly waiting: readonly string[];
}

/** Run of a worker that has no live owner. */
export interface AbandonedRun {
  readonly run: RunSummary;
  readonly task?: string | undefined;
  readonly by?: string | undefined;
  /** Whether the run has used up the budget of its task, so that no worker takes it over. */
  readonly isSpent?: boolean | undefined;
}

export interface ParkedFact extends ParkedWork {
  /** Task of the work, if still known. */
  readonly task?: string | undefined;
}

/** The status as JSON. */
export const describeStatus = (facts: StatusFacts, now: number) => ({
  branch: facts.branch,
  main: facts.main,
  workers: facts.workers.map(fact => ({
    ...describeWorker(fact),
    beat_age_ms: Math.max(0, now - toEpochMs(fact.worker.beatAt)),
  })),
  tasks: facts.tasks.map(describeTask),
  locks: facts.locks.map(describeLock),
  abandoned: facts.abandoned.map(({ run, task, by }) => ({
    run: run.runId,
    task: task ?? null,
    by: by ?? null,
    started_at: run.startedAt,
    lease_until: run.owner?.expiresAt ?? null,
    suspended: run.suspension ? { by: run.suspension.by, reason: run.suspension.reason } : null,
  })),
  parked: facts.parked.map(({ task, ...parked }) => ({ ...parked, task: task ?? null })),
});

/** Key that changes with everything except heartbeats. */
export function changeMark(facts: StatusFacts): string {
  const workers = facts.workers.map(({ worker: { beatAt: _, ...worker }, stalledMs: __, ...fact }) => ({
    ...fact,
    worker,
  }));
  const locks = facts.locks.map(({ stalled, ...lock }) => ({ ...lock, isStalled: stalled !== undefined }));
  const abandoned = facts.abandoned.map(({ run, ...rest }) => ({ ...rest, run: run.runId }));
  return JSON.stringify({ ...facts, workers, locks, abandoned });
}

const describeWorker = ({ worker, life, stalledMs, spent, lane }: WorkerFact) => ({
  name: worker.name,
  life,
  stalled_ms: stalledMs ?? null,
  state: worker.state,
  branch: worker.branch,
  task: worker.task ?? null,
  agent: worker.agent ?? null,
  run: worker.runId ?? null,
  step: lane?.step ?? null,
  doing: lane?.doing ?? null,
  note: worker.note ?? null,
  cost: knownCost(spent),
  pid: worker.pid,
  host: worker.host,
  started_at: worker.startedAt,
  beat_at: worker.beatAt,
});

const describeLock = ({ kind, name, place, state, holder, stalled, waiting }: LockFact) => ({
  kind,
  name,
  place: place ?? null,
  state,
  holder: holder ?? null,
  stalled: stalled ?? null,
  waiting,
});

/** One task as JSON, for `status` and `tasks`. */
export const describeTask = ({ id, task, claim, status }: TaskWithStatus) => ({
  id,
  standing: status.word,
  why: status.text,
  title: task?.title ?? null,
  priority: task?.priority ?? null,
  state: task?.state ?? null,
  needs: task?.needs ?? [],
  agent: status.word === 'ready' ? status.agent.name : (task?.agent ?? null),
  file: task?.file ?? null,
  claim: claim ? describeClaim(claim) : null,
});

const describeClaim = ({ state, by, runId, token, at, reason, commit, branch }: Claim) => ({
  state,
  by,
  run: runId,
  token,
  at,
  reason: reason ?? null,
  commit: commit ?? null,
  branch: branch ?? null,
});
