import { type ErrorCode, type ErrorData, RepriseError, toErrorData } from '../../core/errors.ts';
import type { StepEnd } from '../run/messages.ts';

/** How the work itself ended, before it is kept. */
export interface Done {
  readonly end: StepEnd;
  /** Its first line becomes the message of the commit. */
  readonly summary: string;
  /** The whole message of the commit, if it is to be another one. */
  readonly message?: string | undefined;
}

export const failedWith = (error: ErrorData): StepEnd => ({ kind: 'failed', error });

/** What is wrong with Reprise or its store is not the failure of a step. */
const notOfTheStep: ReadonlySet<ErrorCode> = new Set([
  'FENCED',
  'SEQUENCE_CONFLICT',
  'STORE_FAILED',
  'LANE_MISUSE',
  'DEADLOCK',
  'INTERNAL',
]);

/** How work ends that ended in an error; `undefined` if nobody foresaw it. */
export function endOfThrown(thrown: unknown): StepEnd | undefined {
  if (!(thrown instanceof RepriseError) || notOfTheStep.has(thrown.code)) return undefined;
  return thrown.code === 'CANCELLED'
    ? { kind: 'cancelled', reason: 'cancelled' }
    : failedWith(toErrorData(thrown));
}

/** The run has another owner, who may be at work in the same folders by now: nothing more is to be touched. */
export const isFenced = (thrown: unknown): boolean =>
  thrown instanceof RepriseError && thrown.code === 'FENCED';

/** What happens after the work is done must not hide how it ended. Throws FENCED alone. */
export async function bestEffort(
  body: () => Promise<void>,
  onFailure: (error: ErrorData) => void,
): Promise<void> {
  try {
    await body();
  } catch (thrown) {
    if (isFenced(thrown)) throw thrown;
    onFailure(toErrorData(thrown));
  }
}
