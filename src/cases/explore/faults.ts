import {
  noUsage,
  type Session,
  type SessionFactory,
  type SessionResult,
  type TurnEnd,
} from '../../agents/index.ts';
import { RepriseError } from '../../core/index.ts';
import type { Effect, EffectDefinition, World } from '../../effects/index.ts';
import { type FaultKind, faultKinds } from '../manifest/manifest.ts';
import type { VirtualClock } from '../perform/clock.ts';

/** A single injected failure. */
export interface Fault {
  readonly kind: FaultKind;
  readonly step: string;
  /** Number of the fault point at which it strikes: the points of this kind in the command count from 1. */
  readonly nth: number;
}

const gitEffects = ['workspace.create', 'workspace.commit', 'workspace.remove', 'land.prepare', 'land.move'];
const diskEffects = ['workspace.create', 'workspace.commit', 'task.mark', 'scratch.write', 'store.append'];
const storeEffects = ['store.create', 'store.append', 'claim.take', 'claim.settle'];

/** Effects that each kind can strike. Faults of agents strike when a session is opened. */
const targets: Readonly<Record<FaultKind, ReadonlySet<string>>> = {
  'git-lock': new Set(gitEffects),
  'push-rejected': new Set(['git.push']),
  'disk-full': new Set(diskEffects),
  'store-busy': new Set(storeEffects),
  'agent-dies': new Set(),
  'agent-hangs': new Set(),
  'clock-jump': new Set(['clock.now']),
};

const hourMs = 3_600_000;

const errorOf = (kind: FaultKind, effect: string): RepriseError => {
  switch (kind) {
    case 'git-lock':
      return new RepriseError('GIT_FAILED', "fatal: Unable to create 'index.lock': File exists.");
    case 'push-rejected':
      return new RepriseError('GIT_FAILED', '! [remote rejected] (failed to update ref)');
    case 'disk-full':
      return effect.startsWith('store.')
        ? new RepriseError('STORE_FAILED', 'database or disk is full')
        : new RepriseError('WORKSPACE_FAILED', 'ENOSPC: no space left on device');
    default:
      return new RepriseError('STORE_FAILED', 'database is locked');
  }
};

/** Number of points in one command at which each kind of fault can strike. */
export type FaultPoints = Readonly<Record<FaultKind, number>>;

/** Injects faults into one command, and counts its fault points. */
export class FaultInjector {
  readonly #faults: readonly Fault[];
  readonly #clock: VirtualClock;
  readonly #faultPoints: Record<FaultKind, number> = {
    'git-lock': 0,
    'push-rejected': 0,
    'disk-full': 0,
    'store-busy': 0,
    'agent-dies': 0,
    'agent-hangs': 0,
    'clock-jump': 0,
  };

  constructor(faults: readonly Fault[], clock: VirtualClock) {
    this.#faults = faults;
    this.#clock = clock;
  }

  get faultPoints(): FaultPoints {
    return this.#faultPoints;
  }

  world(world: World): World {
    const effect = <Args, Result>(definition: EffectDefinition<Args, Result>): Effect<Args, Result> => {
      const kinds = kindsOf(definition.name);
      if (kinds.length === 0) return world.effect(definition);
      return world.effect<Args, Result>({
        ...definition,
        perform: (args, cancellation) => {
          const struck = kinds.filter(kind => this.#strikes(kind))[0];
          if (struck === 'clock-jump') this.#clock.advance(hourMs);
          else if (struck) throw errorOf(struck, definition.name);
          return definition.perform(args, cancellation);
        },
      });
    };
    return {
      effect,
      open: (lane, body) => world.open(lane, body),
      fork: body => world.fork(body),
      join: lanes => world.join(lanes),
      cancel: lanes => world.cancel(lanes),
      mailbox: (name, options) => world.mailbox(name, options),
    };
  }

  sessions(open: SessionFactory): SessionFactory {
    return (request, host) => {
      const dies = this.#strikes('agent-dies');
      const hangs = this.#strikes('agent-hangs');
      if (dies) return endedSession({ kind: 'end', result: died });
      if (hangs) return endedSession({ kind: 'end', result: cancelled, cut: { kind: 'timeout' } });
      return open(request, host);
    };
  }

  #strikes(kind: FaultKind): boolean {
    const nth = ++this.#faultPoints[kind];
    return this.#faults.some(fault => fault.kind === kind && fault.nth === nth);
  }
}

const kindsOf = (effect: string): readonly FaultKind[] =>
  faultKinds.filter(kind => targets[kind].has(effect));

const nothingUsed = { usage: noUsage, denials: [] };

const cancelled: SessionResult = { kind: 'cancelled', ...nothingUsed };

const died: SessionResult = {
  kind: 'failed',
  error: { code: 'AGENT_PROTOCOL', message: 'the agent was killed by SIGKILL before it returned a result' },
  ...nothingUsed,
};

/** A session that ends before doing anything. */
const endedSession = (turn: TurnEnd): Session => ({
  next: async () => turn,
  cancel: async () => {},
  close: async () => {},
});
