import { type ErrorData, isErrorCode, RepriseError, toErrorData } from '../core/errors.ts';

/**
 * What an effect touches. Two effects conflict when one writes what the other reads or writes; conflicting effects
 * never overlap, in any mode, and only their order can matter.
 *
 * A key that ends with `:` stands for all keys that begin with it: who reads `claim:` reads every claim.
 */
export interface Keys {
  readonly reads?: readonly string[];
  readonly writes?: readonly string[];
}

/**
 * One kind of call to the outside world, declared once.
 *
 * A `short` effect is one entry in the order and runs to completion. A `long` one is two, its begin and its end:
 * other lanes go on in between, and it can be cancelled. An effect with an `enabled` condition is a wait on the
 * inside (a mailbox, a join, a lock): never write such a wait as sleep-and-retry.
 */
export interface EffectDefinition<Args, Result> {
  /** `<area>.<verb>`, such as `store.append`. */
  readonly name: string;
  readonly span: 'short' | 'long';
  /** Taken all at once when the effect starts, and held until it ends. */
  readonly keys?: (args: Args) => Keys;
  /** May read only state that `keys` cover. */
  readonly enabled?: (args: Args) => boolean;
  /**
   * Of a long one that waits for something outside of this process (a lock, another process): whether that has come, and
   * what it touches then. Live it is simply performed, which waits by itself; a conductor lets it end only when the wait
   * is over, and performs all of it then. Its own `keys`, held from begin to end, are empty.
   */
  readonly awaits?: {
    readonly keys: (args: Args) => Keys;
    readonly isOver: (args: Args) => boolean;
  };
  /** Takes all that waits: granted at the end of the event-loop turn, so that what happens together is one batch. */
  readonly drains?: boolean;
  /** A sign of life: done again and again for as long as somebody lives, and brings nothing forward. */
  readonly upkeep?: boolean;
  /** Not reached by cancellation: joins, and clean-up after a cancel. */
  readonly cleanup?: boolean;
  /** Who answers when a tape is replayed; `real` unless it is said. */
  readonly answer?: Answer;
  /** What of it goes onto a tape and is compared, as data; all of it unless it is said. */
  readonly taped?: Taped<Args, Result>;
  readonly perform: (args: Args, cancellation: Cancellation) => Result | Promise<Result>;
}

/**
 * Who answers on replay: the `tape`, because the outside cannot be asked again (clock, ids, keyboard, functions);
 * the `real` thing, whose answer is compared (git, files, locks), unless all is to come from the tape; or the
 * `inside` of this process, in every case, because other lanes wait for what it changes (mail, joins, the store).
 */
type Answer = 'tape' | 'real' | 'inside';

interface Taped<Args, Result> {
  readonly args?: (args: Args) => unknown;
  readonly result?: (result: Result) => unknown;
  /**
   * Whether nobody, also no function of a workflow, will change what was asked or answered, nor what is in it: then its
   * text is made later, together with others. Otherwise that is done at once, unless it is no object.
   */
  readonly lasting?: {
    readonly args?: (args: Args) => boolean;
    readonly result?: (result: Result) => boolean;
  };
}

/** Whether there are no objects in it. */
export function isFlat(value: object): boolean {
  for (const key in value) {
    const field: unknown = value[key as keyof typeof value];
    if (typeof field === 'object' && field !== null) return false;
  }
  return true;
}

/** How a long effect learns that it is to end. Short effects are never cancelled. */
export interface Cancellation {
  /** For what takes an AbortSignal; made when it is first asked for, because making one is slow. */
  readonly signal: AbortSignal;
  /** Called at once if it has been cancelled already. */
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

/** Whether the key stands for all that begin with it. */
export const isGroup = (key: string): boolean => key.charCodeAt(key.length - 1) === colon;

/** How an effect ended. */
export type Outcome =
  | { readonly kind: 'ok'; readonly value: unknown }
  | { readonly kind: 'failed'; readonly error: ErrorData }
  | { readonly kind: 'cancelled' };

/** What a lane sees when a cancel was granted before the end of its long effect, or before its next one. */
export class Cancelled extends RepriseError {
  override readonly name = 'Cancelled';
  constructor(effect: string) {
    super('CANCELLED', `${effect} was cancelled`);
  }
}

export const failed = (thrown: unknown): Outcome => ({ kind: 'failed', error: toErrorData(thrown) });

/**
 * The error that a lane sees. It is rebuilt from the outcome, not passed on, so that a lane cannot tell
 * a performed effect from one that a tape answered.
 */
export function errorOf(effect: string, outcome: Exclude<Outcome, { kind: 'ok' }>): RepriseError {
  if (outcome.kind === 'cancelled') return new Cancelled(effect);
  const { code, message, hint } = outcome.error;
  if (isErrorCode(code) && code !== 'STEP_FAILED') return new RepriseError(code, message, { hint });
  return new RepriseError('INTERNAL', `${effect}: ${message}${code === 'STEP_FAILED' ? '' : ` (${code})`}`, {
    hint,
  });
}
