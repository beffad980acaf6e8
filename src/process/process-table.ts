import { existsSync } from 'node:fs';
import { psTable } from './ps-table.ts';
import { procTable } from './table.ts';

/** Names a process for ever: a pid alone is given again to another process. */
export interface ProcessIdentity {
  readonly pid: number;
  /** When it started, as a text that means nothing else than being equal or not. */
  readonly processStart: string;
}

/** One process at the moment of looking. */
export interface ProcessEntry extends ProcessIdentity {
  readonly parent: number;
  readonly group: number;
  /** A zombie has ended; only its parent has not asked for its exit code yet. */
  readonly state: 'alive' | 'stopped' | 'zombie';
}

/** Environment variables that a process must all have to be found by them. */
export type Marker = Readonly<Record<string, string>>;

/** The processes of this machine. Looking never throws: what cannot be seen is left out. */
export interface ProcessTable {
  all(): readonly ProcessEntry[];
  one(pid: number): ProcessEntry | undefined;
  /** Those among `entries` whose environment, as it was when they started, has the whole marker. */
  marked(entries: readonly ProcessEntry[], marker: Marker): readonly ProcessEntry[];
  /** Whether one certainly started before the other, and so cannot come from it. `false` also if nobody can tell. */
  startedBefore(one: ProcessIdentity, other: ProcessIdentity): boolean;
}

/** The table of this machine: `/proc` where there is one, otherwise `ps`. */
export const processTable: ProcessTable = existsSync('/proc/self/stat') ? procTable : psTable;
