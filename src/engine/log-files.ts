import { join, relative, resolve, sep } from 'node:path';
import { unitOf } from './state/graph.ts';

/** Identifies an attempt of a step or of a copy of a step. */
export interface AttemptOf {
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
