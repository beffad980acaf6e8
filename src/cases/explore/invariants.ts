import type { EffectOutcome, TracedRequest, Tracer } from '../../effects/index.ts';
import { topLane } from '../../effects/recording/index.ts';
import type { MoveOrder, VerifyOrder } from '../../git/index.ts';
import type { MoveEnd, VerifyResult } from '../../git/landing/index.ts';
import type {
  AcquireRequest,
  AcquireResult,
  Batch,
  ClaimRequest,
  ClaimResult,
  Lease,
  NewRun,
  Settlement,
} from '../../store/index.ts';
import type { Violation } from './contract.ts';
import { endsRun } from './crashes.ts';

/** Watches effects as they happen and reports the first broken rule at once, rather than at the end of the schedule. */
export interface InvariantMonitor {
  readonly tracer: Tracer;
  /** First broken rule, with the number of the effect that broke it. */
  readonly violation: (Violation & { readonly n: number }) | undefined;
  /** Forgets the locks, slots and runs of a killed process. */
  crashed(step: string): void;
}

interface LockHold {
  readonly lane: string;
  readonly by: string;
}

interface TrackedClaim {
  readonly token: number;
  readonly runId: string;
  readonly by: string;
}

type NoteEffect = (request: TracedRequest, value: unknown) => Violation | undefined;

export interface InvariantMonitorOptions {
  /** Whether a commit must be verified before it lands. */
  readonly verifies: boolean;
}

/** Creates a monitor of claims, locks, run ownership and landings. */
export function createInvariantMonitor({ verifies }: InvariantMonitorOptions): InvariantMonitor {
  const state = new MonitorState(verifies);
  const notes: Readonly<Record<string, NoteEffect>> = {
    'store.create': (request, value) => state.owns(request, value as Lease),
    'store.acquire': (request, value) => {
      const result = value as AcquireResult;
      return result.kind === 'acquired' ? state.takesOver(request, result.lease) : undefined;
    },
    'store.append': ({ args }) => state.appends(args as Batch),
    'store.release': ({ args }) => state.leaves(args as OwnedRun),
    'claim.take': (request, value) => state.claims(request, value as ClaimResult),
    'claim.settle': (request, value) => (value === true ? state.settles(request) : undefined),
    'command.tasks': ({ args }) => state.releases(args as readonly string[]),
    'agent.take-slot': request => state.takes(request, slotOf(request)),
    'agent.release-slot': request => state.gives(request),
    'land.lock': request => state.takes(request, { lock: 'land', places: 1 }),
    'land.unlock': request => state.gives(request),
    'land.verify': (request, value) => state.verifies(request, value as VerifyResult),
    'land.move': (request, value) => state.moves(request, value as MoveEnd),
  };
  let violation: InvariantMonitor['violation'];
  return {
    tracer: {
      granted: () => {},
      settled: (request, { n }, outcome) => {
        const found = noted(notes, request, outcome);
        if (found) violation ??= { ...found, n };
      },
    },
    get violation() {
      return violation;
    },
    crashed: step => state.forgets(step),
  };
}

const noted = (
  notes: Readonly<Record<string, NoteEffect>>,
  request: TracedRequest,
  outcome: EffectOutcome,
): Violation | undefined =>
  outcome.kind === 'ok' ? notes[request.effect.name]?.(request, outcome.value) : undefined;

interface OwnedRun {
  readonly runId: string;
  readonly lease: Lease;
}

interface SlotLimit {
  readonly lock: string;
  readonly places: number;
}

const slotOf = ({ args }: TracedRequest): SlotLimit => {
  const { agent, places } = args as { readonly agent: string; readonly places: number };
  return { lock: `places of ${agent}`, places };
};

class MonitorState {
  readonly #epochs = new Map<string, number>();
  /** Command that owns a run, by run. */
  readonly #owners = new Map<string, string>();
  /** Runs that have ended. Their tasks are free even if the owner has not released the run yet. */
  readonly #over = new Set<string>();
  readonly #claims = new Map<string, TrackedClaim>();
  readonly #holds = new Map<string, LockHold[]>();
  readonly #held = new Map<string, string>();
  readonly #verified = new Set<string>();
  readonly #verifies: boolean;

  constructor(verifies: boolean) {
    this.#verifies = verifies;
  }

  owns({ lane, args }: TracedRequest, { epoch }: Lease): undefined {
    const { runId } = args as Pick<NewRun, 'runId'>;
    this.#epochs.set(runId, epoch);
    this.#over.delete(runId);
    this.#owners.set(runId, topLane(lane.name));
  }

  /** An owner that died or released the run is not tracked any more, so the takeover is allowed. */
  takesOver(request: TracedRequest, lease: Lease): Violation | undefined {
    const { runId } = request.args as AcquireRequest;
    const before = this.#owners.get(runId);
    const by = topLane(request.lane.name);
    this.owns(request, lease);
    if (before === undefined) return undefined;
    return {
      what: 'taken from the living',
      message: `${by} took over run ${runId} from ${before}, which was alive`,
    };
  }

  appends({ runId, events }: Batch): undefined {
    if (endsRun(events)) this.#over.add(runId);
  }

  leaves({ runId, lease }: OwnedRun): undefined {
    if (this.#epochs.get(runId) === lease.epoch) this.#owners.delete(runId);
  }

  claims({ lane, args }: TracedRequest, result: ClaimResult): Violation | undefined {
    const { task, runId } = args as ClaimRequest;
    if (result.kind !== 'claimed' || runId === null) return undefined;
    const before = this.#claims.get(task);
    const by = topLane(lane.name);
    this.#claims.set(task, { token: result.claim.token, runId, by });
    if (!before || before.runId === runId) return undefined;
    if (!this.#owners.has(before.runId) || this.#over.has(before.runId)) return undefined;
    return {
      what: 'claimed twice',
      message: `${by} claimed ${task} while ${before.by} was working on it`,
    };
  }

  settles({ args }: TracedRequest): undefined {
    this.#claims.delete((args as Settlement).task);
  }

  /** Follows the command `tasks release <task>`. */
  releases([, action, task = '']: readonly string[]): undefined {
    if (action === 'release') this.#claims.delete(task);
  }

  takes({ lane, args }: TracedRequest, { lock, places }: SlotLimit): Violation | undefined {
    const { key } = args as { readonly key: string };
    const holds = this.#holds.get(lock) ?? [];
    this.#holds.set(lock, [...holds, { lane: lane.name, by: topLane(lane.name) }]);
    this.#held.set(`${topLane(lane.name)} ${key}`, lock);
    if (holds.length < places) return undefined;
    return {
      what: `${lock} held twice`,
      message: `${topLane(lane.name)} took ${lockWords(lock)} while ${holds.map(({ by }) => by).join(' and ')} held ${places === 1 ? 'it' : 'all of them'}`,
    };
  }

  gives({ lane, args }: TracedRequest): undefined {
    const key = `${topLane(lane.name)} ${keyOf(args)}`;
    const lock = this.#held.get(key);
    if (lock === undefined) return;
    this.#held.delete(key);
    const holds = this.#holds.get(lock) ?? [];
    const at = holds.findIndex(hold => hold.lane === lane.name);
    this.#holds.set(
      lock,
      holds.filter((_, index) => index !== at),
    );
  }

  verifies({ args }: TracedRequest, { passed }: VerifyResult): undefined {
    if (passed) this.#verified.add((args as VerifyOrder).commit);
  }

  moves({ lane, args }: TracedRequest, { kind }: MoveEnd): Violation | undefined {
    if (kind !== 'moved') return undefined;
    const { runId, lease, onto, ready, claim } = args as MoveOrder;
    const by = topLane(lane.name);
    const holds = this.#holds.get('land') ?? [];
    if (!holds.some(hold => hold.lane === lane.name))
      return {
        what: 'landed without the lock',
        message: `${by} moved ${onto} without holding the landing lock`,
      };
    if (this.#verifies && !this.#verified.has(ready.commit))
      return { what: 'landed unverified', message: `${by} moved ${onto} to a commit that was not verified` };
    if (this.#epochs.get(runId) !== lease.epoch)
      return {
        what: 'landed by a former owner',
        message: `${by} moved ${onto} for a run that another process had taken over`,
      };
    const now = claim && this.#claims.get(claim.task);
    if (claim && (now?.token !== claim.token || now.runId !== runId))
      return {
        what: 'landed without the claim',
        message: `${by} landed ${claim.task}, which it no longer had claimed`,
      };
    return undefined;
  }

  forgets(step: string): void {
    for (const [lock, holds] of this.#holds)
      this.#holds.set(
        lock,
        holds.filter(({ by }) => by !== step),
      );
    for (const key of [...this.#held.keys()]) if (key.startsWith(`${step} `)) this.#held.delete(key);
    for (const [runId, by] of [...this.#owners]) if (by === step) this.#owners.delete(runId);
  }
}

const keyOf = (args: unknown): string =>
  typeof args === 'string' ? args : (args as { readonly key: string }).key;

const lockWords = (lock: string): string =>
  lock === 'land' ? 'the landing lock' : lock.replace(/^places of /, 'a slot of agent ');
