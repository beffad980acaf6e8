import { type Timestamp, toEpochMs } from '../../core/time.ts';
import type { Outcome } from '../../effects/effect.ts';
import { topLane } from '../../effects/recording/recording.ts';
import type { TracedRequest, Tracer } from '../../effects/tracer.ts';
import type { MoveEnd, Verified } from '../../git/landing/landing.ts';
import type { MoveOrder, VerifyOrder } from '../../git/orders.ts';
import type { ClaimRequest, ClaimResult, Settlement } from '../../store/claims.ts';
import type { AcquireRequest, AcquireResult, Batch, Lease, NewRun } from '../../store/port.ts';
import type { Violation } from './contract.ts';
import { endsRun } from './crashes.ts';

/** Who has what, as the effects say while they happen: what breaks a rule is seen at once, and not only at the end. */
export interface Ledger {
  readonly tracer: Tracer;
  /** The first rule that was broken, with the number of entries granted before. */
  readonly violation: (Violation & { readonly n: number }) | undefined;
  /** A process was killed: what it held is held by nobody. */
  crashed(step: string): void;
}

interface Hold {
  readonly lane: string;
  readonly by: string;
}

interface Claimed {
  readonly token: number;
  readonly runId: string;
  readonly by: string;
}

type Note = (request: TracedRequest, value: unknown) => Violation | undefined;

export interface LedgerOptions {
  /** Whether what lands has to be verified before. */
  readonly verifies: boolean;
}

/** Follows claims, locks and landings. */
export function openLedger({ verifies }: LedgerOptions): Ledger {
  const book = new Book(verifies);
  const notes: Readonly<Record<string, Note>> = {
    'store.create': (request, value) => book.owns(request, value as Lease),
    'store.acquire': (request, value) => {
      const result = value as AcquireResult;
      return result.kind === 'acquired' ? book.takesOver(request, result.lease) : undefined;
    },
    'store.renew': (request, value) => (value === true ? book.renews(request) : undefined),
    'store.append': ({ args }) => book.appends(args as Batch),
    'store.release': ({ args }) => book.leaves(args as Owned),
    'claim.take': (request, value) => book.claims(request, value as ClaimResult),
    'claim.settle': (request, value) => (value === true ? book.settles(request) : undefined),
    'agent.take-slot': request => book.takes(request, slotOf(request)),
    'agent.release-slot': request => book.gives(request),
    'land.lock': request => book.takes(request, { lock: 'land', places: 1 }),
    'land.unlock': request => book.gives(request),
    'land.verify': (request, value) => book.verifies(request, value as Verified),
    'land.move': (request, value) => book.moves(request, value as MoveEnd),
  };
  let violation: Ledger['violation'];
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
    crashed: step => book.forgets(step),
  };
}

const noted = (
  notes: Readonly<Record<string, Note>>,
  request: TracedRequest,
  outcome: Outcome,
): Violation | undefined =>
  outcome.kind === 'ok' ? notes[request.effect.name]?.(request, outcome.value) : undefined;

interface Owned {
  readonly runId: string;
  readonly lease: Lease;
}

interface RunOwner {
  readonly by: string;
  readonly expiresAt: Timestamp | undefined;
}

interface Places {
  readonly lock: string;
  readonly places: number;
}

const slotOf = ({ args }: TracedRequest): Places => {
  const { agent, places } = args as { readonly agent: string; readonly places: number };
  return { lock: `places of ${agent}`, places };
};

class Book {
  readonly #epochs = new Map<string, number>();
  readonly #owners = new Map<string, RunOwner>();
  /** Runs that are over, although whoever had them may not have let go yet: nobody is at work on their tasks. */
  readonly #over = new Set<string>();
  readonly #claims = new Map<string, Claimed>();
  readonly #holds = new Map<string, Hold[]>();
  readonly #held = new Map<string, string>();
  readonly #verified = new Set<string>();
  readonly #verifies: boolean;

  constructor(verifies: boolean) {
    this.#verifies = verifies;
  }

  owns({ lane, args }: TracedRequest, { epoch }: Lease): undefined {
    const { runId, expiresAt } = args as Pick<NewRun, 'runId' | 'expiresAt'>;
    this.#epochs.set(runId, epoch);
    this.#over.delete(runId);
    this.#owners.set(runId, { by: topLane(lane.name), expiresAt });
  }

  /** Of an owner that has died, or has let go, nothing is known any more. */
  takesOver(request: TracedRequest, lease: Lease): Violation | undefined {
    const { runId, now } = request.args as AcquireRequest;
    const before = this.#owners.get(runId);
    const by = topLane(request.lane.name);
    this.owns(request, lease);
    if (!before?.expiresAt || toEpochMs(before.expiresAt) <= toEpochMs(now)) return undefined;
    return {
      what: 'taken from the living',
      message: `${by} took over run ${runId} from ${before.by}, whose lease had not run out`,
    };
  }

  renews({ args }: TracedRequest): undefined {
    const { runId, expiresAt } = args as Pick<NewRun, 'runId' | 'expiresAt'>;
    const owner = this.#owners.get(runId);
    if (owner) this.#owners.set(runId, { ...owner, expiresAt });
  }

  appends({ runId, events }: Batch): undefined {
    if (endsRun(events)) this.#over.add(runId);
  }

  leaves({ runId, lease }: Owned): undefined {
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
      message: `${by} claimed ${task} while ${before.by} was at work on it`,
    };
  }

  settles({ args }: TracedRequest): undefined {
    this.#claims.delete((args as Settlement).task);
  }

  takes({ lane, args }: TracedRequest, { lock, places }: Places): Violation | undefined {
    const { key } = args as { readonly key: string };
    const holds = this.#holds.get(lock) ?? [];
    this.#holds.set(lock, [...holds, { lane: lane.name, by: topLane(lane.name) }]);
    this.#held.set(`${topLane(lane.name)} ${key}`, lock);
    if (holds.length < places) return undefined;
    return {
      what: `${lock} held twice`,
      message: `${topLane(lane.name)} took ${lockWords(lock)} while ${holds.map(({ by }) => by).join(' and ')} held it`,
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

  verifies({ args }: TracedRequest, { passed }: Verified): undefined {
    if (passed) this.#verified.add((args as VerifyOrder).commit);
  }

  moves({ lane, args }: TracedRequest, { kind }: MoveEnd): Violation | undefined {
    if (kind !== 'moved') return undefined;
    const { runId, lease, onto, ready, claim } = args as MoveOrder;
    const by = topLane(lane.name);
    const holds = this.#holds.get('land') ?? [];
    if (!holds.some(hold => hold.lane === lane.name))
      return { what: 'landed without the lock', message: `${by} moved ${onto} without the lock for landing` };
    if (this.#verifies && !this.#verified.has(ready.commit))
      return { what: 'landed unverified', message: `${by} moved ${onto} to a commit that was not verified` };
    if (this.#epochs.get(runId) !== lease.epoch)
      return {
        what: 'landed by a former owner',
        message: `${by} moved ${onto} for a run that somebody else had taken over`,
      };
    const now = claim && this.#claims.get(claim.task);
    if (claim && (now?.token !== claim.token || now.runId !== runId))
      return {
        what: 'landed without the claim',
        message: `${by} landed ${claim.task}, which was no longer its own`,
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
    for (const [runId, { by }] of [...this.#owners]) if (by === step) this.#owners.delete(runId);
  }
}

const keyOf = (args: unknown): string =>
  typeof args === 'string' ? args : (args as { readonly key: string }).key;

const lockWords = (lock: string): string => (lock === 'land' ? 'the lock for landing' : `one of the ${lock}`);
