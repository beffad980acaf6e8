import type { RepositoryEnd } from '../../cases/explore/endings.ts';
import type { PreparedCase } from '../../cases/explore/prepare.ts';
import type { RepriseError } from '../../core/errors.ts';
import type { OpenLog } from '../../process/log.ts';
import type { Host, OpenStore } from '../../project/host.ts';
import type { EventStore } from '../../store/port.ts';
import type { DeltaOptions } from '../vcr/deltas.ts';
import type { SharedState } from './keys/shared-state.ts';
import type { Violation } from './violation.ts';

/** Where schedules are played: on real git, or on a model of it in memory. */
export interface Theatre {
  readonly kind: 'memory' | 'git';
  readonly prepared: PreparedCase;
  /** Everything as it is before the first step that is explored. One scene at a time. */
  open(): Promise<Scene>;
  /** One like it, to play there at the same time, if that brings something forward. */
  another?(): Promise<Theatre>;
}

/** The surroundings of one schedule. */
export interface Scene {
  readonly surround?: Host['surround'];
  readonly openStore: OpenStore;
  /** Where what scripts print goes; into files unless it is said. */
  readonly openLog?: OpenLog | undefined;
  readonly deltas: DeltaOptions;
  /** Names the files that are checked out in a folder. */
  readonly filesAt: (folder: string) => string | undefined | Promise<string | undefined>;
  /** To be asked when all steps are over. */
  repository(): Promise<RepositoryEnd>;
  store(): EventStore | undefined;
  /** What steps share, as it is now. */
  look(): Promise<SharedState>;
  /** What it cannot do, although it was asked to. */
  problems(): readonly RepriseError[];
  /** Checks what the case says of its repository. */
  violation(): Promise<Violation | undefined>;
  close(): Promise<void>;
}
