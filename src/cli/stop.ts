import { randomUUID } from 'node:crypto';

/** Requests to stop this process. */
export interface Stop {
  /** Aborted by the first request. Its reason is recorded in the history. */
  readonly signal: AbortSignal;
  /** Exit code for the first signal (128 plus its number). `undefined` until a signal arrives. */
  readonly exitCode: number | undefined;
  /** Environment variable that marks every process started from here. */
  readonly marker: Readonly<Record<string, string>>;
  /** Acts as if Ctrl-C had been pressed. */
  readonly interrupt: () => void;
  /** Sets the handler for a second Ctrl-C. */
  onForce(force: () => Promise<void>): void;
  /** Kills every process started from here, without a grace period. */
  endChildren(): Promise<void>;
}

const signals = [
  ['SIGINT', 2, 'interrupted by Ctrl-C'],
  ['SIGTERM', 15, 'ended by SIGTERM'],
  ['SIGHUP', 1, 'the terminal was closed'],
] as const;

/** Listens for SIGINT, SIGTERM and SIGHUP. The first one asks to stop, the second forces it, the third exits at once. */
export function createStop(): Stop {
  const controller = new AbortController();
  const marker = { REPRISE_PROCESS: randomUUID() };
  let exitCode: number | undefined;
  let force = async (): Promise<void> => {};
  let forced = false;
  const handle = (number: number, reason: string) => {
    if (exitCode === undefined) {
      exitCode = 128 + number;
      controller.abort(reason);
    } else if (!forced) {
      forced = true;
      void force();
    } else process.exit(exitCode);
  };
  for (const [name, number, reason] of signals) process.on(name, () => handle(number, reason));
  return {
    signal: controller.signal,
    get exitCode() {
      return exitCode;
    },
    marker,
    interrupt: () => handle(2, 'interrupted by Ctrl-C'),
    onForce: next => {
      force = next;
    },
    endChildren: async () => {
      const { endTrees } = await import('../process/tree.ts');
      await endTrees({ roots: [], marked: marker, graceMs: 0 });
    },
  };
}
