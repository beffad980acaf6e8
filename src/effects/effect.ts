import { type ErrorData, isErrorCode, RepriseError, toErrorData } from '../core/index.ts';

/**
 * Resources that an effect touches. Two effects conflict if one writes a key that the other reads or writes.
 * Conflicting effects never overlap, in any mode, and only their order can matter.
 *
 * A key that ends with `:` covers all keys with that prefix: an effect that reads `claim:` reads every claim.
 */
export interface Keys {
  readonly reads?: readonly string[];
  readonly writes?: readonly string[];
}

/**
 * One kind of call to the outside world, declared once.
 *
 * A `short` effect is one entry in the schedule and runs to completion. A `long` effect is two entries, its start and
 * its end: other lanes continue in between, and it can be cancelled. An effect with an `enabled` condition waits for
 * something inside this process (a mailbox, a join, a lock): never write such a wait as sleep-and-retry.
 */
export interface EffectDefinition<Args, Result> {
  /** Name of the form `<area>.<verb>`, such as `store.append`. */
  readonly name: string;
  readonly span: 'short' | 'long';
  /** Keys acquired together when the effect starts, and held until it ends. */
  readonly keys?: (args: Args) => Keys;
  /** Condition for the start. May read only state covered by `keys`. */
  readonly enabled?: (args: Args) => boolean;
  /**
   * Wait of a long effect for something outside this process (a lock, another process): whether the wait is over, and
   * the keys that the effect touches then. In a live run the effect is simply performed and waits by itself. A
   * conductor lets it end only when the wait is over, and performs all of it at that moment. Such an effect must have
   * no `keys`, since those are held from start to end.
   */
  readonly awaits?: {
    readonly keys: (args: Args) => Keys;
    readonly isOver: (args: Args) => boolean;
  };
  /** Whether the effect drains a queue. Granted at the end of the event-loop turn, so that it gets one batch. */
  readonly drains?: boolean;
  /** Whether the effect is a heartbeat: repeated for as long as a process lives, without making progress. */
  readonly upkeep?: boolean;
  /** Whether cancellation skips the effect, as for joins and cleanup after a cancel. */
  readonly cleanup?: boolean;
  /** Source of the answer on replay. Defaults to `real`. */
  readonly answer?: AnswerSource;
  /** Parts that are written to a tape and compared, as data. Defaults to everything. */
  readonly taped?: Taped<Args, Result>;
  readonly perform: (args: Args, cancellation: Cancellation) => Result | Promise<Result>;
}

/**
 * Source of the answer on replay:
 * - `tape`: the recording, because the outside cannot be asked again (clock, ids, keyboard, functions);
 * - `real`: the real thing, whose answer is compared with the tape (git, files, locks), unless the replay takes
 *   everything from the tape;
 * - `inside`: this process, always, because other lanes wait for the state that it changes (mail, joins, the store).
 */
type AnswerSource = 'tape' | 'real' | 'inside';

interface Taped<Args, Result> {
  readonly args?: (args: Args) => unknown;
  readonly result?: (result: Result) => unknown;
  /**
   * Whether the arguments or the result stay unchanged for good, including everything nested in them. Such values are
   * serialized later, in batches. Values that may still change, or that may be large, are serialized at once.
   */
  readonly lasting?: {
    readonly args?: (args: Args) => boolean;
    readonly result?: (result: Result) => boolean;
  };
}

/** Whether none of the fields is an object. */
export function isFlat(value: object): boolean {
  for (const key in value) {
    const field: unknown = value[key as keyof typeof value];
    if (typeof field === 'object' && field !== null) return false;
  }
  return true;
}

/** Tells a long effect to stop. Short effects are never cancelled. */
export interface Cancellation {
  /** Signal for APIs that take one. Created on first access, because creating one is slow. */
  readonly signal: AbortSignal;
  /** Calls the listener on cancellation, or immediately if the effect is already cancelled. */
  onCancel(listener: () => void): void;
}

/** An effect as domain code calls it. Rejects with a RepriseError, or with Cancelled. */
export type Effect<Args, Result> = (args: Args) => Promise<Result>;

export const conflicts = (a: Keys, b: Keys): boolean =>
  meet(a.writes, b.writes) || meet(a.writes, b.reads) || meet(a.reads, b.writes);

const meet = (a: readonly string[] | undefined, b: readonly string[] | undefined): boolean =>
  a !== undefined && b !== undefined && a.some(key => b.some(other => sameOrWithin(key, other)));

const sameOrWithin = (a: string, b: string): boolean =>
  a === b || (isGroup(a) && b.startsWith(a)) || (isGroup(b) && a.startsWith(b));

const colon = 58;

/** Whether the key covers all keys with its prefix. */
export const isGroup = (key: string): boolean => key.charCodeAt(key.length - 1) === colon;

/** Result of an effect. */
export type EffectOutcome =
  | { readonly kind: 'ok'; readonly value: unknown }
  | { readonly kind: 'failed'; readonly error: ErrorData }
  | { readonly kind: 'cancelled' };

/** Thrown in a lane if a cancel was granted before the end of its long effect, or before its next one begins. */
export class Cancelled extends RepriseError {
  override readonly name = 'Cancelled';
  constructor(effect: string) {
    super('CANCELLED', `${effect} was cancelled`);
  }
}

export const failed = (thrown: unknown): EffectOutcome => ({ kind: 'failed', error: toErrorData(thrown) });

/**
 * Returns the error that a lane sees. It is rebuilt from the outcome instead of passed on, so that a lane cannot tell
 * a performed effect from one answered by a tape.
 */
export function errorOf(effect: string, outcome: Exclude<EffectOutcome, { kind: 'ok' }>): RepriseError {
  if (outcome.kind === 'cancelled') return new Cancelled(effect);
  const { code, message, hint } = outcome.error;
  if (isErrorCode(code) && code !== 'STEP_FAILED') return new RepriseError(code, message, { hint });
  return new RepriseError('INTERNAL', `${effect}: ${message}${code === 'STEP_FAILED' ? '' : ` (${code})`}`, {
    hint,
  });
}
