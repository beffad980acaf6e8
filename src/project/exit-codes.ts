import { type ErrorCode, type ErrorData, RepriseError } from '../core/index.ts';
import type { RunResult } from '../engine/index.ts';

/** Exit codes of the process. A signal exits with 128 plus its number. */
export const exitCodes = {
  ok: 0,
  failed: 1,
  usage: 2,
  needsPerson: 3,
  budget: 4,
  diverged: 5,
  cannotLand: 6,
} as const;

export type ExitCode = (typeof exitCodes)[keyof typeof exitCodes];

/** Returns the exit code for a run that has ended, waits or is suspended. A signal has its own exit code. */
export function exitCodeOfResult(result: RunResult): ExitCode {
  switch (result.status) {
    case 'completed':
      return exitCodes.ok;
    case 'failed':
      return exitCodeOfFailure(result.error);
    case 'cancelled':
      return exitCodes.failed;
    case 'waiting':
      return exitCodes.needsPerson;
    case 'suspended':
      if (result.by === 'lock') return exitCodes.needsPerson;
      return result.by === 'budget' ? exitCodes.budget : exitCodes.failed;
  }
}

/** Returns the exit code for a command that failed. */
export const exitCodeOfError = (error: unknown): ExitCode =>
  error instanceof RepriseError ? exitCodeOfFailure(error) : exitCodes.failed;

function exitCodeOfFailure({ code }: Pick<ErrorData, 'code'>): ExitCode {
  return special.get(code) ?? (mistakes.has(code) ? exitCodes.usage : exitCodes.failed);
}

const special: ReadonlyMap<string, ExitCode> = new Map<ErrorCode, ExitCode>([
  ['BUDGET_EXCEEDED', exitCodes.budget],
  ['AGENT_LIMIT', exitCodes.budget],
  ['HISTORY_DIVERGED', exitCodes.diverged],
  ['REPLAY_DIVERGED', exitCodes.diverged],
  ['CANNOT_LAND', exitCodes.cannotLand],
  ['PERMISSION_DENIED', exitCodes.needsPerson],
  ['AGENT_LOGIN', exitCodes.needsPerson],
  ['LOCK_STALLED', exitCodes.needsPerson],
]);

/** Errors before anything ran: the command, the definition or the input must change first. */
const mistakes: ReadonlySet<string> = new Set<ErrorCode>([
  'DEFINITION_INVALID',
  'DEFINITION_CHANGED',
  'INPUT_INVALID',
  'WORKFLOW_NOT_FOUND',
  'CASE_NOT_FOUND',
  'CONFIG_INVALID',
  'USAGE',
  'RUN_NOT_FOUND',
  'RUN_AMBIGUOUS',
  'RUN_ENDED',
  'TASK_NOT_FOUND',
  'NOT_WAITING',
  'CHOICE_UNKNOWN',
]);
