/** Lets the calls of this process through one at a time, in the order in which they came. */
export class LocalQueue {
  readonly #tails = new Map<string, Promise<void>>();

  /** Resolves with what lets the next one in. Rejects, having left the queue, when the signal is aborted. */
  async enter(key: string, signal?: AbortSignal): Promise<() => void> {
    const before = this.#tails.get(key) ?? Promise.resolve();
    let leave = () => {};
    const own = new Promise<void>(resolve => {
      leave = resolve;
    });
    const tail = before.then(() => own);
    this.#tails.set(key, tail);
    void tail.then(() => {
      if (this.#tails.get(key) === tail) this.#tails.delete(key);
    });
    try {
      await orAborted(before, signal);
    } catch (error) {
      leave();
      throw error;
    }
    return leave;
  }
}

async function orAborted(promise: Promise<void>, signal: AbortSignal | undefined): Promise<void> {
  if (signal === undefined) return promise;
  signal.throwIfAborted();
  let stop = () => {};
  const aborted = new Promise<never>((_, reject) => {
    stop = () => reject(signal.reason);
    signal.addEventListener('abort', stop, { once: true });
  });
  try {
    await Promise.race([promise, aborted]);
  } finally {
    signal.removeEventListener('abort', stop);
  }
}
