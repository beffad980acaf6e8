/** Reasons for which a signal suspends the runs of a process. History contains them. */
export const signalReasons = {
  SIGINT: 'interrupted by Ctrl-C',
  SIGTERM: 'ended by SIGTERM',
  SIGHUP: 'the terminal was closed',
} as const;

/** Reason for which the other workers of a process suspend their runs. */
export const failedWorker = 'another worker of the process failed';

/** Reason for which the workers of a process suspend their runs once they have spent their common budget. */
export const exhaustedWorkers = 'the workers of this process have used up their budget';

const bySignal: ReadonlySet<string> = new Set([signalReasons.SIGTERM, signalReasons.SIGHUP, failedWorker]);

/** Returns who stops a run: a person, unless the reason is one that the process gives itself. */
export function stoppedBy(reason: string): 'person' | 'signal' | 'budget' {
  if (reason === exhaustedWorkers) return 'budget';
  return bySignal.has(reason) ? 'signal' : 'person';
}

/** Time that sessions get to reach a point at which stopping loses nothing. */
export const patienceMs = { person: 30_000, budget: 30_000, signal: 8_000 } as const;
