import type { ErrorData } from '../core/errors.ts';
import { isJsonObject, type JsonObject } from '../core/json.ts';
import type { ClaudeState } from './claude/claude.ts';
import { failed, reportedFailure } from './driver/failures.ts';
import { event, type Step, type Verdict, verdict } from './driver/protocol.ts';
import { at, listAt, numberAt, own, textAt } from './json-line.ts';
import type { Usage } from './session.ts';

/**
 * The last line of a turn. Only `is_error` tells a failure: the exit code and `subtype: success` do not.
 * Its usage is that of the turn, its cost that of the whole session as far as claude knows it.
 */
export function claudeResult(state: ClaudeState, message: JsonObject, now: number): Step<ClaudeState> {
  const usage = usageOf(message);
  const costSoFar = numberAt(message, 'total_cost_usd');
  const known = state.costUsd + costBefore(state.before, message, usage);
  const costUsd = costSoFar === undefined ? null : Math.max(0, costSoFar - known);
  return {
    state: { ...state, costUsd: costSoFar ?? state.costUsd, before: undefined },
    signals: [event({ type: 'usage', ...usage, costUsd }), verdict(verdictOf(state, message, now))],
  };
}

/**
 * What of its cost the session had before this process. It counts on where the last process ended by itself, from
 * nothing where that was killed, and from somewhere between where others who share its settings wrote over what it had
 * saved: the tokens beside the cost tell how much of what we know is in it.
 */
function costBefore(before: Usage | undefined, message: JsonObject, turn: Omit<Usage, 'costUsd'>): number {
  if (!before || tokensOf(before) === 0) return 0;
  const models = at(message, 'modelUsage');
  const counted = Object.values(isJsonObject(models) ? models : {}).reduce<number>(
    (sum, model) => sum + modelTokens.reduce((tokens, name) => tokens + (numberAt(model, name) ?? 0), 0),
    0,
  );
  const share = (counted - tokensOf(turn)) / tokensOf(before);
  return (before.costUsd ?? 0) * Math.min(1, Math.max(0, share));
}

const modelTokens = ['inputTokens', 'outputTokens', 'cacheReadInputTokens', 'cacheCreationInputTokens'];

const tokensOf = ({ inputTokens, outputTokens }: Omit<Usage, 'costUsd'>): number =>
  inputTokens + outputTokens;

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
  const subtype = textAt(message, 'subtype');
  const said = text || errors.join('\n') || subtype || 'claude failed without saying why';
  if (subtype === 'error_max_structured_output_retries') return failed(outputInvalid(said));
  return reportedFailure({
    kind: 'claude',
    message: said,
    status: numberAt(message, 'api_error_status'),
    resetsAt: state.resetsAt,
    hint: own(hints, reason),
    now,
  });
}

const hints: Readonly<Record<string, string | undefined>> = {
  max_turns: 'allow more turns, or make the step smaller',
  budget_exhausted: 'raise the budget that the agent was given under `args`',
  prompt_too_long: 'make the prompt shorter, or split the step',
};

const outputInvalid = (message: string): ErrorData => ({
  code: 'OUTPUT_INVALID',
  message,
  hint: 'make the output schema simpler, or say in the prompt what the answer must look like',
});
