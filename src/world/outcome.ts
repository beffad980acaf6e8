import { type ErrorData, isErrorCode, RepriseError, toErrorData } from '../core/errors.ts';

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
