import { RepriseError } from '../core/errors.ts';

/** The first error that stops everything. Whoever has to end with it is told; lanes are not. */
export class Stop {
  #error: Error | undefined;
  #tell: (error: Error) => void = () => {};
  readonly #listeners = new Set<(error: Error) => void>();
  readonly happened: Promise<Error>;

  constructor() {
    this.happened = new Promise(resolve => {
      this.#tell = resolve;
    });
  }

  get error(): Error | undefined {
    return this.#error;
  }

  /** Only the first counts: what comes after it is its consequence. */
  because(error: Error): void {
    if (this.#error) return;
    this.#error = error;
    this.#tell(error);
    for (const listener of this.#listeners) listener(error);
    this.#listeners.clear();
  }

  /** What it throws stops everything. */
  guard(action: () => void): void {
    try {
      action();
    } catch (thrown) {
      this.because(thrown instanceof Error ? thrown : new RepriseError('INTERNAL', String(thrown)));
    }
  }

  addListener(listener: (error: Error) => void): void {
    this.#listeners.add(listener);
  }

  removeListener(listener: (error: Error) => void): void {
    this.#listeners.delete(listener);
  }
}
