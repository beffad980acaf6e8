import { join, relative, resolve, sep } from 'node:path';
import type { AgentDefinition, AgentEvent, SessionFactory } from '../agents/index.ts';
import type { Clock, HistoryEvent, Ids, JsonObject } from '../core/index.ts';
import { Cancelled, type World } from '../effects/index.ts';
import type { Branches, WorkUnit } from '../git/index.ts';
import type { OpenLog, RunProgram, RunShellOptions, ShellEnd } from '../process/index.ts';
import type { EventStore, Owner } from '../store/index.ts';
import { unitOf } from './state/graph.ts';
import type { BuiltInWork } from './step/contract.ts';
import type { RepositoryOnce } from './step/taping.ts';

/** Dependencies of the engine. */
export interface Environment {
  readonly world: World;
  readonly clock: Clock;
  readonly ids: Ids;
  readonly store: EventStore;
  /** Process that owns the runs it starts. */
  readonly self: Omit<Owner, 'incarnation'>;
  /** Absolute path of the project, where shell steps run. */
  readonly projectRoot: string;
  /** Folder that paths in histories are relative to, the same in every worktree. Defaults to `projectRoot`. */
  readonly historyRoot?: string | undefined;
  /** Folder for logs and scratch files. */
  readonly stateDir: string;
  /** Folder for the slots of agents, which other projects do not share. Defaults to `stateDir`. */
  readonly slotDir?: string | undefined;
  /** Environment variables that shell steps inherit. */
  readonly env: Readonly<Record<string, string | undefined>>;
  readonly settings: EngineSettings;
  /** Agents of the project, by name. */
  readonly agents: ReadonlyMap<string, AgentDefinition>;
  readonly openSession: SessionFactory;
  readonly runShell: ShellRunner;
  /** Starts git. Defaults to a child process of this process. */
  readonly runProgram?: RunProgram | undefined;
  /** Repository of the project, shared by engine and workers. Defaults to one that is opened on first use. */
  readonly repository?: RepositoryOnce | undefined;
  /** Opens the readable log of an agent. Defaults to files. */
  readonly openLog?: OpenLog | undefined;
  /** Whether a process on this machine may still act as this owner. */
  readonly isAlive: (owner: Owner) => boolean;
  /** Time for which a live owner has been stalled; `undefined` if it is not. Defaults to a function that knows of none. */
  readonly stalledFor?: ((owner: Owner) => number | undefined) | undefined;
  readonly worktrees: WorktreeSettings;
  /** Reads branches without a workspace. Defaults to the branches of the repository. */
  readonly branches?: Branches | undefined;
  /** Implementations of `built-in` steps, by name. */
  readonly builtIns?: Readonly<Record<string, BuiltInWork>> | undefined;
}

/** A script that is part of a step's work. */
export interface WorkScript extends RunShellOptions {
  readonly unit: WorkUnit;
  /** Name of a script other than the step's own work, such as `check-1`. */
  readonly what?: string | undefined;
}

/** Runs scripts. Recording and replay replace it. */
export type ShellRunner = (script: WorkScript) => Promise<ShellEnd>;

/** Settings for new workspaces. */
export interface WorktreeSettings {
  /** Absolute path of the folder that contains the workspaces. */
  readonly folder: string;
  /** Shell commands that prepare a new workspace. */
  readonly setup: readonly string[];
  /** Patterns of ignored files to copy into a new workspace. */
  readonly include: readonly string[];
  /** Patterns of protected files beside those that always are. `!` removes a pattern. */
  readonly protect?: readonly string[] | undefined;
}

export interface EngineSettings {
  /** Time that a lease lasts without renewal. */
  readonly leaseMs: number;
  /** Interval at which the inbox is polled. */
  readonly inboxMs: number;
  /** Time that a cancelled step has to end on its own. */
  readonly graceMs: number;
  /** Time after which a run is suspended if the holder of a lock is stalled for so long. Defaults to no limit. */
  readonly lockTimeoutMs?: number | undefined;
}

export const defaultSettings: EngineSettings = { leaseMs: 15_000, inboxMs: 100, graceMs: 5_000 };

/** An observable fact about a run in progress. Observers cannot change anything. */
export type Observation =
  /** Committed events, which are never retracted. */
  | { readonly kind: 'events'; readonly events: readonly HistoryEvent[] }
  | {
      readonly kind: 'output';
      readonly step: string;
      readonly worker?: number | undefined;
      readonly stream: 'stdout' | 'stderr';
      readonly line: string;
    }
  | {
      readonly kind: 'log';
      readonly step: string;
      readonly worker?: number | undefined;
      readonly message: string;
      readonly fields?: JsonObject | undefined;
    }
  /** Activity of an agent, reported as it happens. */
  | {
      readonly kind: 'agent';
      readonly step: string;
      readonly worker?: number | undefined;
      /** Absolute path of the folder that the agent works in. */
      readonly folder?: string | undefined;
      readonly event: AgentEvent;
    }
  | { readonly kind: 'notice'; readonly message: string };

export type Observer = (observation: Observation) => void;

/** Effects for the clock and the keyboard, shared by engine lanes and workers. */
export const outsideEffects = ({ world, clock }: { readonly world: World; readonly clock: Clock }) => ({
  now: world.effect<void, number>({
    name: 'clock.now',
    span: 'short',
    answer: 'tape',
    perform: () => clock.now(),
  }),

  sleepUntil: world.effect<number, void>({
    name: 'clock.sleep',
    span: 'long',
    answer: 'tape',
    perform: (epochMs, { signal }) => clock.waitUntil(epochMs, signal),
  }),

  /** Resolves with the reason when this process is asked to stop. */
  interrupted: world.effect<AbortSignal, string>({
    name: 'keyboard.interrupt',
    span: 'long',
    answer: 'tape',
    taped: { args: () => undefined },
    perform: (interrupt, cancellation) =>
      new Promise((resolve, reject) => {
        const stop = () => resolve(String(interrupt.reason));
        if (interrupt.aborted) stop();
        interrupt.addEventListener('abort', stop, { once: true });
        cancellation.onCancel(() => {
          interrupt.removeEventListener('abort', stop);
          reject(new Cancelled('keyboard.interrupt'));
        });
      }),
  }),
});

/** Identifies an attempt of a step or of a copy of a step. */
interface AttemptOf {
  readonly step: string;
  readonly worker?: number | undefined;
  readonly attempt: number;
}

/** Returns the unit as a prefix for file names: `fix:1/build` becomes `fix.worker_1.build`. */
export const unitFileName = ({ step, worker }: Omit<AttemptOf, 'attempt'>): string =>
  unitOf(step, worker)
    .replaceAll('/', '.')
    .replace(/:(\d+)/g, '.worker_$1');

/** Returns the file name prefix of one attempt. */
export const attemptFileName = (of: AttemptOf): string => `${unitFileName(of)}.${of.attempt}`;

/** Folders that paths in a history refer to. */
export interface HistoryFolders {
  readonly root: string;
  readonly stateDir: string;
}

/** Name of the state folder in histories, wherever the folder is. */
const stateInHistories = '.reprise/state/';

/** Returns the path of a file or folder that a history names, absolute if the folders are. */
export const resolveRecorded = ({ root, stateDir }: HistoryFolders, path: string): string =>
  path.startsWith(stateInHistories) ? join(stateDir, path.slice(stateInHistories.length)) : join(root, path);

/** Returns the name of a file or folder for a history: below the state folder, or relative to the root. */
export function recordedPath({ root, stateDir }: HistoryFolders, path: string): string {
  const inState = relative(stateDir, path);
  return inState.startsWith('..') || resolve(inState) === inState
    ? relative(root, path)
    : `${stateInHistories}${inState.split(sep).join('/')}`;
}

/** Returns the folder that contains the logs of a run. */
export const logFolder = (stateDir: string, runId: string): string => join(stateDir, 'logs', runId);

/**
 * Returns the path of an attempt's readable log: the output of its script or the activity of its agent. `what` names
 * the log of an additional script instead, such as `check-1`.
 */
export const logFile = (
  { stateDir, runId }: { readonly stateDir: string; readonly runId: string },
  of: AttemptOf,
  what?: string,
): string =>
  join(logFolder(stateDir, runId), `${attemptFileName(of)}${what === undefined ? '' : `.${what}`}.log`);
