import { RepriseError } from '../../core/errors.ts';

/** Why a run cannot become a test case, and what to do. */
export const refused = (message: string, hint: string, cause?: unknown): RepriseError =>
  new RepriseError('CAPTURE_REFUSED', message, { hint, ...(cause === undefined ? {} : { cause }) });

export const runAgain = 'run the workflow again, and capture that run';
