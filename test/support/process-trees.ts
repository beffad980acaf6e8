import { setTimeout as delay } from 'node:timers/promises';
import { isSameProcess, type ProcessIdentity, processStart, processTable } from '../../src/process/table.ts';
import { findTree } from '../../src/process/tree.ts';

const identityOf = (pid: number): ProcessIdentity => ({ pid, processStart: processStart(pid) ?? 'gone' });

/** A command with all processes that it has started, also those in other process groups. */
export class ProcessTree {
  readonly #root: ProcessIdentity;
  readonly #known = new Map<string, ProcessIdentity>();

  constructor(pid: number) {
    this.#root = identityOf(pid);
  }

  #alive(): readonly ProcessIdentity[] {
    for (const entry of findTree({ roots: [this.#root, ...this.#known.values()] }))
      this.#known.set(`${entry.pid} ${entry.processStart}`, entry);
    return [...this.#known.values()].filter(isSameProcess);
  }

  /** Kills all of them in the same moment, as `docker kill` does: none reacts to the death of another. */
  async kill(): Promise<void> {
    await this.stop();
    for (const each of this.#alive()) signal(each, 'SIGKILL');
    while (this.#alive().length > 0) await delay(5);
  }

  /** Stops all of them, and returns when none runs any more. */
  async stop(): Promise<void> {
    for (;;) {
      const running = this.#alive().filter(({ pid }) => processTable.one(pid)?.state === 'alive');
      if (running.length === 0) return;
      for (const each of running) signal(each, 'SIGSTOP');
      await delay(1);
    }
  }

  resume(): void {
    for (const each of this.#alive()) signal(each, 'SIGCONT');
  }
}

function signal(target: ProcessIdentity, name: NodeJS.Signals): void {
  try {
    if (isSameProcess(target)) process.kill(target.pid, name);
  } catch {
    // It has ended meanwhile.
  }
}
