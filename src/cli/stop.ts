import { randomUUID } from 'node:crypto';

/** How this process is told to stop. */
export interface Stop {
  /** Aborted by the first request; its reason goes into history. */
  readonly signal: AbortSignal;
  /** What the shell is told of the signal that came first; `undefined` while none has. */
  readonly exitCode: number | undefined;
  /** In the environment of everything that is started from here. */
  readonly marker: Readonly<Record<string, string>>;
  /** As if Ctrl-C had been pressed. */
  readonly interrupt: () => void;
  /** What a second Ctrl-C does. */
  onForce(force: () => Promise<void>): void;
  /** Kills everything that was started from here, at once. */
  endChildren(): Promise<void>;
}

const signals = [
  ['SIGINT', 2, 'interrupted by Ctrl-C'],
  ['SIGTERM', 15, 'ended by SIGTERM'],
  ['SIGHUP', 1, 'the terminal was closed'],
] as const;

/** Listens to the signals that ask a process to stop: the first is a request, another one an order. */
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
