import type { AgentDefinition } from '../agents/agent.ts';
import type { AgentEvent, SessionFactory } from '../agents/session.ts';
import type { HistoryEvent } from '../core/events.ts';
import type { JsonObject } from '../core/json.ts';
import type { Clock, Ids } from '../core/time.ts';
import type { World } from '../effects/world.ts';
import type { Unit } from '../git/orders.ts';
import type { Branches } from '../git/refs.ts';
import type { OpenLog } from '../process/log.ts';
import type { RunProgram } from '../process/program.ts';
import type { ShellEnd, ShellStepOptions } from '../process/shell-step.ts';
import type { EventStore, Owner } from '../store/port.ts';
import type { BuiltInWork } from './step/contract.ts';

/** What the engine is given: the door to the world, and what stands behind it. */
export interface Environment {
  readonly world: World;
  readonly clock: Clock;
  readonly ids: Ids;
  readonly store: EventStore;
  /** The process that owns the runs it starts. */
  readonly self: Omit<Owner, 'incarnation'>;
  /** Where shell steps run. */
  readonly projectRoot: string;
  /** Logs and scratch files live below. */
  readonly stateDir: string;
  /** What shell steps inherit. */
  readonly env: Readonly<Record<string, string | undefined>>;
  readonly settings: EngineSettings;
  /** The agents of the project, by name. */
  readonly agents: ReadonlyMap<string, AgentDefinition>;
  readonly openSession: SessionFactory;
  readonly runShell: ShellRunner;
  /** Starts git; this process does unless it is said. */
  readonly runProgram?: RunProgram | undefined;
  /** Where what agents do is written for people; files unless it is said. */
  readonly openLog?: OpenLog | undefined;
  /** Whether somebody may still act as this owner, on this machine. */
  readonly isAlive: (owner: Owner) => boolean;
  readonly worktrees: WorktreeSettings;
  /** What is read of branches by whoever has no workspace; those of the repository unless it is said. */
  readonly branches?: Branches | undefined;
  /** What steps of the kind `built-in` do, by name. */
  readonly builtIns?: Readonly<Record<string, BuiltInWork>> | undefined;
}

/** A script that belongs to the work of a step. */
export interface WorkScript extends ShellStepOptions {
  readonly unit: Unit;
  /** What it is beside the work itself, such as `check-1`. */
  readonly what?: string | undefined;
}

/** Runs scripts; something else can stand in for shells. */
export type ShellRunner = (script: WorkScript) => Promise<ShellEnd>;

/** How workspaces are made. */
export interface WorktreeSettings {
  /** Absolute; workspaces are below it. */
  readonly folder: string;
  /** Shell commands that make a new workspace ready. */
  readonly setup: readonly string[];
  /** Patterns of ignored files to copy into it. */
  readonly include: readonly string[];
}

export interface EngineSettings {
  /** How long a run stays ours without a sign of life. */
  readonly leaseMs: number;
  /** How often other processes' messages are looked for. */
  readonly inboxMs: number;
  /** How long what is cancelled may take to end by itself. */
  readonly graceMs: number;
}

export const defaultSettings: EngineSettings = { leaseMs: 15_000, inboxMs: 100, graceMs: 5_000 };

/** What there is to see while a run goes on. Observers cannot change anything. */
export type Observation =
  /** Committed: what is seen here is never taken back. */
  | { readonly kind: 'events'; readonly events: readonly HistoryEvent[] }
  | {
      readonly kind: 'output';
      readonly step: string;
      readonly worker?: number | undefined;
      readonly stream: 'stdout' | 'stderr';
      readonly line: string;
    }
  | {
      readonly kind: 'log';
      readonly step: string;
      readonly worker?: number | undefined;
      readonly message: string;
      readonly fields?: JsonObject | undefined;
    }
  /** What an agent does, as it happens. */
  | {
      readonly kind: 'agent';
      readonly step: string;
      readonly worker?: number | undefined;
      /** That it works in. */
      readonly folder?: string | undefined;
      readonly event: AgentEvent;
    }
  | { readonly kind: 'notice'; readonly message: string };

export type Observer = (observation: Observation) => void;
