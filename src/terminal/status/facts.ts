import type { ParkedWork } from '../../git/workspace/branch-records.ts';
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
