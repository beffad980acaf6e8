import { AsyncResource } from 'node:async_hooks';
import type { World } from '../effects/world.ts';

/**
 * A world in which nobody goes on as long as it is held: a lane at the top that asks for nothing counts as running.
 * Otherwise whoever is not killed would get ahead of what is started in the place of who is, by as much as that takes.
 */
export class HeldWorld {
  readonly #world: Pick<World, 'open'>;
  /** Where it was made: outside of all lanes, in whichever of them somebody is killed. */
  readonly #outside = new AsyncResource('reprise.held-world');
  readonly #holds = new Map<string, () => void>();

  constructor(world: Pick<World, 'open'>) {
    this.#world = world;
  }

  hold(name: string): void {
    if (this.#holds.has(name)) return;
    const isOver = new Promise<void>(resolve => this.#holds.set(name, resolve));
    // That the world is stopped, those are told who play in it.
    this.#outside.runInAsyncScope(() => this.#world.open(`${name} is left`, () => isOver)).catch(() => {});
  }

  letGo(name: string): void {
    this.#holds.get(name)?.();
    this.#holds.delete(name);
  }
}
