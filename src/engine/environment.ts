import type { HistoryEvent } from '../core/event.ts';
import type { JsonObject } from '../core/json.ts';
import type { Clock, Ids } from '../core/ports.ts';
import type { EventStore, Owner } from '../store/port.ts';
import type { World } from '../world/world.ts';

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
      readonly stream: 'stdout' | 'stderr';
      readonly line: string;
    }
  | {
      readonly kind: 'log';
      readonly step: string;
      readonly message: string;
      readonly fields?: JsonObject | undefined;
    }
  | { readonly kind: 'notice'; readonly message: string };

export type Observer = (observation: Observation) => void;
