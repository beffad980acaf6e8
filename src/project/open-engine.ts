import { join } from 'node:path';
import type { AgentDefinition } from '../agents/agent.ts';
import { builtInAgents, lazySessions } from '../agents/open-session.ts';
import type { SessionFactory } from '../agents/session.ts';
import { createLiveWorld } from '../effects/live-world.ts';
import { systemClock, systemIds } from '../effects/system.ts';
import type { Tracer } from '../effects/tracer.ts';
import { Engine } from '../engine/engine.ts';
import {
  defaultSettings,
  type EngineSettings,
  type Environment,
  type Observer,
  type ShellRunner,
  type WorktreeSettings,
} from '../engine/environment.ts';
import { isAlive, thisProcess } from '../process/table.ts';
import type { EventStore } from '../store/port.ts';
import type { Host } from './host.ts';

export interface OpenEngineOptions {
  /** Where shell steps run. */
  readonly root: string;
  /** Where the store, logs and scratch files are; `.reprise/state` below the root by default. */
  readonly stateDir?: string | undefined;
  /** What shell steps inherit. */
  readonly env: Readonly<Record<string, string | undefined>>;
  /** SQLite in the state folder by default. */
  readonly store?: EventStore | undefined;
  readonly observe?: Observer | undefined;
  readonly settings?: Partial<EngineSettings> | undefined;
  /** By name; `claude` and `codex` with the permissions `edit` by default. */
  readonly agents?: ReadonlyMap<string, AgentDefinition> | undefined;
  /** How sessions with agents are opened; a function of your own can stand in for them. */
  readonly openSession?: SessionFactory | undefined;
  /** Workspaces are below `.reprise/workspaces`, without setup, by default. */
  readonly worktrees?: Partial<WorktreeSettings> | undefined;
  /** Work that the program brings along. */
  readonly builtIns?: ((environment: Environment) => Environment['builtIns']) | undefined;
  /** Stands in for the real world. */
  readonly host?: Host | undefined;
}

export interface OpenedEngine {
  readonly engine: Engine;
  readonly store: EventStore;
  readonly environment: Environment;
  close(): Promise<void>;
}

/** The engine on the real world. Throws STORE_FAILED if the store cannot be opened. */
export async function openEngine(options: OpenEngineOptions): Promise<OpenedEngine> {
  const stateDir = options.stateDir ?? join(options.root, '.reprise', 'state');
  const host = options.host ?? liveHost();
  const store =
    options.store ?? (await host.openStore?.(stateDir, { readonly: false })) ?? (await openStore(stateDir));
  const given: Environment = {
    world: host.world,
    clock: host.clock,
    ids: host.ids,
    store,
    self: thisProcess(),
    projectRoot: options.root,
    stateDir,
    env: options.env,
    settings: { ...defaultSettings, ...options.settings },
    agents: options.agents ?? builtInAgents,
    openSession: options.openSession ?? host.openSession,
    runShell: host.runShell,
    isAlive,
    worktrees: {
      folder: join(options.root, '.reprise', 'workspaces'),
      setup: [],
      include: [],
      ...options.worktrees,
    },
  };
  const environment = host.surround?.(given) ?? given;
  const engine = new Engine({ ...environment, builtIns: options.builtIns?.(environment) }, options.observe);
  return { engine, store, environment, close: () => store.close() };
}

/** The machine that this process runs on; `tracer` is told of everything that crosses the boundary. */
export const liveHost = (tracer?: Tracer): Host => ({
  world: createLiveWorld({ tracer }),
  clock: systemClock,
  ids: systemIds,
  openSession: lazySessions,
  runShell: lazyShells,
});

/** The code that runs scripts is loaded with the first of them. */
const lazyShells: ShellRunner = async script =>
  (await import('../process/shell-step.ts')).runShellStep(script);

export const storeFile = (stateDir: string): string => join(stateDir, 'reprise.db');

/** The store of a project, made if there is none, unless `readonly`. Throws STORE_FAILED, STORE_NEWER. */
export async function openStore(
  stateDir: string,
  options: { readonly readonly?: boolean; readonly durable?: boolean } = {},
): Promise<EventStore> {
  const { openSqliteStore } = await import('../store/sqlite/store.ts');
  return openSqliteStore({ ...options, file: storeFile(stateDir) });
}
