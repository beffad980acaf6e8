import { join } from 'node:path';
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
