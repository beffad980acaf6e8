import {
  type AgentDefinition,
  builtInAgents,
  deferred,
  lazySessions,
  type SessionFactory,
} from '../agents/index.ts';
import { createLiveWorld, systemClock, systemIds, type Tracer } from '../effects/index.ts';
import {
  defaultSettings,
  Engine,
  type EngineSettings,
  type Environment,
  type Observer,
  type ShellRunner,
  type WorktreeSettings,
} from '../engine/index.ts';
import { openOnce } from '../engine/step/index.ts';
import { isOwnerAlive, proveAlive, stalledFor } from '../git/index.ts';
import { thisProcess } from '../process/index.ts';
import type { EventStore } from '../store/index.ts';
import type { Host } from './host.ts';
import { locateState, type ProjectState } from './state.ts';

export interface OpenEngineOptions {
  /** Absolute path of the project, which shell steps run in. */
  readonly root: string;
  /**
   * Folder for the store, logs and scratch files. Defaults to `reprise` in git's common directory, or `.reprise/state`
   * below the root outside a repository.
   */
  readonly stateDir?: string | undefined;
  /** Place of the state, if the caller knows it. */
  readonly state?: ProjectState | undefined;
  /** Environment variables that shell steps inherit. */
  readonly env: Readonly<Record<string, string | undefined>>;
  /** Event store. Defaults to SQLite in the state folder. */
  readonly store?: EventStore | undefined;
  readonly observe?: Observer | undefined;
  readonly settings?: Partial<EngineSettings> | undefined;
  /** Agents by name. Defaults to `claude` and `codex` with the `edit` permissions. */
  readonly agents?: ReadonlyMap<string, AgentDefinition> | undefined;
  /** Opens sessions with agents. Pass your own function to replace them, for example in tests. */
  readonly openSession?: SessionFactory | undefined;
  /** Settings for workspaces. Defaults to `.reprise/workspaces` without setup. */
  readonly worktrees?: Partial<WorktreeSettings> | undefined;
  /** Implementations of built-in steps. */
  readonly builtIns?: ((environment: Environment) => Environment['builtIns']) | undefined;
  /** Replacement for the real world. */
  readonly host?: Host | undefined;
}

export interface OpenedEngine {
  readonly engine: Engine;
  readonly store: EventStore;
  readonly environment: Environment;
  close(): Promise<void>;
}

/** Opens an engine, by default on the real world. Throws STORE_FAILED if the store cannot be opened. */
export async function openEngine(options: OpenEngineOptions): Promise<OpenedEngine> {
  const { root, env } = options;
  const state = options.state ?? locateState({ root, env, given: options.stateDir });
  const { folder: stateDir, historyRoot } = state;
  const host = options.host ?? liveHost();
  const store =
    options.store ??
    (await host.openStore?.(stateDir, { readonly: false })) ??
    (await (await import('./open-state.ts')).openState({ state, root, env, mode: 'writable' }));
  // The commands of a case share one process, which lives as long as any of them.
  if (!host.surround) proveAlive(stateDir);
  const given: Environment = {
    world: host.world,
    clock: host.clock,
    ids: host.ids,
    store,
    self: thisProcess(),
    projectRoot: root,
    historyRoot,
    stateDir,
    slotDir: state.slots,
    env: options.env,
    settings: { ...defaultSettings, ...options.settings },
    agents: options.agents ?? builtInAgents,
    openSession: options.openSession ?? host.openSession,
    runShell: host.runShell,
    isAlive: owner => isOwnerAlive(stateDir, owner),
    ...(host.surround ? {} : { stalledFor: owner => stalledFor(stateDir, owner) }),
    worktrees: {
      folder: state.workspaces,
      setup: [],
      include: [],
      ...options.worktrees,
    },
  };
  const surrounded = host.surround?.(given) ?? given;
  const environment = { ...surrounded, repository: openOnce(surrounded) };
  const engine = new Engine({ ...environment, builtIns: options.builtIns?.(environment) }, options.observe);
  return { engine, store, environment, close: () => store.close() };
}

/** Returns a host on this machine. `tracer` receives every effect. */
export const liveHost = (tracer?: Tracer): Host => ({
  world: createLiveWorld({ tracer }),
  clock: systemClock,
  ids: systemIds,
  openSession: deferred(async () =>
    (await import('../engine/step/agent/index.ts')).watchEscapes(lazySessions),
  ),
  runShell: lazyShells,
});

/** Loads the code that runs scripts on first use. */
const lazyShells: ShellRunner = async script =>
  (await import('../process/shell-step.ts')).runShellStep(script);
