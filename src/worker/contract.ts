import type { ErrorData } from '../core/errors.ts';
import type { ClaimState } from '../store/claims.ts';
import type { TaskProblem } from './task.ts';
import type { Change } from './wake.ts';

/** Why a worker came to its end. */
export type EndReason = 'stopped' | 'idle' | 'once' | 'nothing-to-do' | 'max-tasks' | 'budget';

/** What a worker tells of itself, beside what its runs tell. */
export type WorkerNews =
  | { readonly kind: 'enlisted'; readonly name: string }
  | { readonly kind: 'problems'; readonly problems: readonly TaskProblem[] }
  | { readonly kind: 'takes-over'; readonly runId: string }
  /** Somebody else has the run. */
  | { readonly kind: 'lost'; readonly runId: string | undefined }
  | { readonly kind: 'nothing'; readonly why: string }
  | { readonly kind: 'sleeps'; readonly why: string }
  | { readonly kind: 'woke'; readonly what: Change }
  | {
      readonly kind: 'let-go';
      readonly task: string;
      readonly state: ClaimState;
      readonly reason: string;
      /** Where the work is, if there is some. */
      readonly branch?: string | undefined;
      readonly hint?: string | undefined;
    }
  /** Something of it that only whoever cleans up removes. */
  | { readonly kind: 'left'; readonly what: string; readonly why: string }
  | { readonly kind: 'ended'; readonly reason: EndReason };

/** What became of a task that a worker had. */
export interface TaskEnd {
  /** `undefined`: it did not get as far as having one. */
  readonly task: string | undefined;
  readonly runId: string;
  /** Why it did not land. */
  readonly error: ErrorData | undefined;
}

export interface WorkerEnd {
  readonly reason: EndReason;
  readonly tasks: readonly TaskEnd[];
}

export const firstLineOf = (text: string): string => text.split('\n', 1)[0] ?? '';
