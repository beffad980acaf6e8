import type { ConductedLane } from './asked.ts';

/** The lanes alive, by name and in the order of their names, so that nothing depends on who came first. */
export class LaneTable {
  readonly #byName = new Map<string, ConductedLane>();
  #inOrder: readonly ConductedLane[] | undefined;

  get inOrder(): readonly ConductedLane[] {
    this.#inOrder ??= [...this.#byName.values()].sort((a, b) => (a.name < b.name ? -1 : 1));
    return this.#inOrder;
  }

  get(name: string): ConductedLane | undefined {
    return this.#byName.get(name);
  }

  has(name: string): boolean {
    return this.#byName.has(name);
  }

  add(lane: ConductedLane): void {
    this.#byName.set(lane.name, lane);
    this.#inOrder = undefined;
  }

  delete(name: string): void {
    this.#byName.delete(name);
    this.#inOrder = undefined;
  }
}
