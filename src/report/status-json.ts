import { toEpochMs } from '../core/time.ts';
import type { Claim } from '../store/claims.ts';
import type { LockFact, StatusFacts, WorkerFact } from '../terminal/status/facts.ts';
import type { TaskStanding } from '../worker/tasks/status.ts';

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
