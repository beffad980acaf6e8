import { toEpochMs } from '../../core/time.ts';
import type { ParkedWork } from '../../git/workspace/branch-records.ts';
import type { Claim } from '../../store/claims.ts';
import type { RunSummary } from '../../store/port.ts';
import type { WorkerRecord } from '../../store/runs.ts';
import type { TaskStanding } from '../../worker/tasks/status.ts';
import type { TaskProblem } from '../../worker/tasks/task.ts';

/** Everything that there is to say of workers and tasks, as it stood at one moment. */
export interface StatusFacts extends TaskFacts {
  readonly workers: readonly WorkerFact[];
  /** Those that somebody has, or waits for. */
  readonly locks: readonly LockFact[];
  readonly abandoned: readonly AbandonedRun[];
  readonly parked: readonly ParkedFact[];
}

export interface TaskFacts {
  /** What is landed on, and where it stands; `null`: it has no commit. */
  readonly branch: string;
  readonly main: string | null;
  readonly tasks: readonly TaskStanding[];
  readonly problems: readonly TaskProblem[];
  /** Files of the checkout that are to be tasks. */
  readonly uncommitted: readonly UncommittedTask[];
  /** How somebody adds a task here. */
  readonly howToAdd: string;
}

export interface UncommittedTask {
  readonly id: string;
  /** From the top of the repository. */
  readonly file: string;
  /** Whether the branch has the task, with another text. */
  readonly isKnown: boolean;
}

export interface WorkerFact {
  readonly worker: WorkerRecord;
  /** `silent`: nobody knows that it is dead, but its last sign of life is too long ago. */
  readonly life: 'alive' | 'silent' | 'dead';
  /** Of all its tasks, the one under way included; `null` if part of it is not known. */
  readonly costUsd: number | null;
  readonly lane?: LaneFact | undefined;
}

/** What the run of a worker does now. */
export interface LaneFact {
  /** `undefined` between steps. */
  readonly step: string | undefined;
  /** The last that history tells, in a few words. */
  readonly doing: string | undefined;
}

export interface LockFact {
  /** `agent`: one of the places of an agent. */
  readonly kind: 'agent' | 'repository';
  readonly name: string;
  /** Of the agent, from 1. */
  readonly place?: number | undefined;
  /** `abandoned`: its holder died; whoever asks for it next has it. */
  readonly state: 'held' | 'abandoned' | 'free';
  readonly holder?: string | undefined;
  readonly waiting: readonly string[];
}

/** A run of a worker that nobody is at work on any more. */
export interface AbandonedRun {
  readonly run: RunSummary;
  readonly task?: string | undefined;
  readonly by?: string | undefined;
}

export interface ParkedFact extends ParkedWork {
  /** Whose work it is, if that is still known. */
  readonly task?: string | undefined;
}

/** The facts as programs get them. */
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
  })),
  parked: facts.parked.map(({ task, ...parked }) => ({ ...parked, task: task ?? null })),
});

/** The same for as long as nothing has happened: signs of life alone are nothing. */
export function changeMark(facts: StatusFacts): string {
  const workers = facts.workers.map(({ worker: { beatAt: _, ...worker }, ...fact }) => ({ ...fact, worker }));
  const abandoned = facts.abandoned.map(({ run, ...rest }) => ({ ...rest, run: run.runId }));
  return JSON.stringify({ ...facts, workers, abandoned });
}

const describeWorker = ({ worker, life, costUsd, lane }: WorkerFact) => ({
  name: worker.name,
  life,
  state: worker.state,
  branch: worker.branch,
  task: worker.task ?? null,
  agent: worker.agent ?? null,
  run: worker.runId ?? null,
  step: lane?.step ?? null,
  doing: lane?.doing ?? null,
  note: worker.note ?? null,
  cost: costUsd,
  pid: worker.pid,
  host: worker.host,
  started_at: worker.startedAt,
  beat_at: worker.beatAt,
});

const describeLock = ({ kind, name, place, state, holder, waiting }: LockFact) => ({
  kind,
  name,
  place: place ?? null,
  state,
  holder: holder ?? null,
  waiting,
});

/** One task, as `status` and `tasks` print it. */
export const describeTask = ({ id, task, claim, standing }: TaskStanding) => ({
  id,
  standing: standing.word,
  why: standing.text,
  title: task?.title ?? null,
  priority: task?.priority ?? null,
  state: task?.state ?? null,
  needs: task?.needs ?? [],
  agent: standing.word === 'ready' ? standing.agent.name : (task?.agent ?? null),
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
