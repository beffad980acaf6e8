import type { SessionFactory } from '../agents/session.ts';
import type { Clock, Ids } from '../core/time.ts';
import type { World } from '../effects/world.ts';
import type { Environment, ShellRunner } from '../engine/environment.ts';
import type { EventStore } from '../store/port.ts';
import type { WorkflowModel } from '../workflow/model.ts';

/** What stands between a command and the outside. Commands have the real thing, unless a test case stands in for it. */
export interface Host {
  readonly world: World;
  readonly clock: Clock;
  readonly ids: Ids;
  readonly openSession: SessionFactory;
  readonly runShell: ShellRunner;
  /** SQLite in the state folder if it is absent; `undefined` if there is none and nobody may make one. */
  readonly openStore?: OpenStore | undefined;
  /** Makes others of the surroundings in which a command would work: to have it work somewhere else than on this machine. */
  readonly surround?: ((environment: Environment) => Environment) | undefined;
  /** Gives what was made before under the same name: for commands that are played a thousand times in one folder. */
  readonly once?: Once | undefined;
  /** Makes another workflow of the one that was loaded, to see what would have happened. */
  readonly revise?: ((model: WorkflowModel) => WorkflowModel) | undefined;
}

/** `make` must give the same whenever it is called. */
export type Once = <T>(name: string, make: () => Promise<T>) => Promise<T>;

/** Makes each thing once. What could not be made is made again when it is asked for. */
export function rememberOnce(): Once {
  const made = new Map<string, Promise<unknown>>();
  return <T>(name: string, make: () => Promise<T>): Promise<T> => {
    const known = made.get(name) as Promise<T> | undefined;
    if (known) return known;
    const making = make();
    made.set(name, making);
    making.catch(() => made.delete(name));
    return making;
  };
}

/** Makes it every time. */
export const everyTime: Once = (_, make) => make();

export type OpenStore = (
  stateDir: string,
  options: { readonly readonly: boolean },
) => Promise<EventStore | undefined>;
