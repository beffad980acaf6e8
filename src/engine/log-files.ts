import { join } from 'node:path';
import { unitOf } from './state/graph.ts';

/** Which attempt of which step, or worker of one, something was done for. */
export interface AttemptOf {
  readonly step: string;
  readonly worker?: number | undefined;
  readonly attempt: number;
}

/** A unit as the beginning of a file name: `fix:1/build` is `fix.worker_1.build`. */
export const unitFileName = ({ step, worker }: Omit<AttemptOf, 'attempt'>): string =>
  unitOf(step, worker)
    .replaceAll('/', '.')
    .replace(/:(\d+)/g, '.worker_$1');

/** What one attempt is called among files. */
export const attemptFileName = (of: AttemptOf): string => `${unitFileName(of)}.${of.attempt}`;

/** Where the logs of a run are. */
export const logFolder = (stateDir: string, runId: string): string => join(stateDir, 'logs', runId);

/**
 * The log of an attempt: what its script printed, or what its agent did, for people to read. With `what`, that of
 * something beside it, such as `check-1`.
 */
export const logFile = (
  { stateDir, runId }: { readonly stateDir: string; readonly runId: string },
  of: AttemptOf,
  what?: string,
): string =>
  join(logFolder(stateDir, runId), `${attemptFileName(of)}${what === undefined ? '' : `.${what}`}.log`);
