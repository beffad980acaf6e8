import type { JsonObject } from '../core/json.ts';
import type { ClaudeState } from './claude.ts';
import { reportedFailure } from './failures.ts';
import { at, listAt, numberAt, own, textAt } from './json-line.ts';
import type { Usage } from './port.ts';
import { event, type Step, type Verdict, verdict } from './protocol.ts';

/**
 * The last line of a turn. Only `is_error` tells a failure: the exit code and `subtype: success` do not.
 * Its usage is that of the turn, its cost that of the whole process.
 */
export function claudeResult(state: ClaudeState, message: JsonObject, now: number): Step<ClaudeState> {
  const costSoFar = numberAt(message, 'total_cost_usd');
  const costUsd = costSoFar === undefined ? null : Math.max(0, costSoFar - state.costUsd);
  return {
    state: { ...state, costUsd: costSoFar ?? state.costUsd },
    signals: [
      event({ type: 'usage', ...usageOf(message), costUsd }),
      verdict(verdictOf(state, message, now)),
    ],
  };
}

function usageOf(message: JsonObject): Omit<Usage, 'costUsd'> {
  const count = (name: string) => numberAt(message, 'usage', name) ?? 0;
  const cachedTokens = count('cache_read_input_tokens');
  return {
    inputTokens: count('input_tokens') + count('cache_creation_input_tokens') + cachedTokens,
    outputTokens: count('output_tokens'),
    cachedTokens,
  };
}

function verdictOf(state: ClaudeState, message: JsonObject, now: number): Verdict {
  const reason = textAt(message, 'terminal_reason') ?? '';
  if (reason.startsWith('aborted')) return { kind: 'stopped' };
  const text = textAt(message, 'result') ?? '';
  if (message['is_error'] === false) {
    const structured = at(message, 'structured_output');
    return { kind: 'ok', text, ...(structured === undefined ? {} : { structured }) };
  }
  const errors = listAt(message, 'errors').filter(error => typeof error === 'string');
  const said = text || errors.join('\n') || textAt(message, 'subtype') || 'claude failed without saying why';
  return reportedFailure({
    kind: 'claude',
    message: said,
    status: numberAt(message, 'api_error_status'),
    resetsAt: state.resetsAt,
    hint: own(hints, reason) ?? own(hints, textAt(message, 'subtype') ?? ''),
    now,
  });
}

const hints: Readonly<Record<string, string | undefined>> = {
  max_turns: 'allow more turns, or make the step smaller',
  budget_exhausted: 'raise the budget that the agent was given under `args`',
  prompt_too_long: 'make the prompt shorter, or split the step',
  structured_output_retry_exhausted:
    'make the output schema simpler, or say in the prompt what the answer must look like',
  error_max_structured_output_retries:
    'make the output schema simpler, or say in the prompt what the answer must look like',
};
