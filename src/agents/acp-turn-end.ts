import type { Json } from '../core/json.ts';
import type { AcpState } from './acp/acp.ts';
import { flushText } from './acp/updates.ts';
import { failed, protocolError, reportedFailure } from './driver/failures.ts';
import { event, type Step, type Verdict, verdict } from './driver/protocol.ts';
import { at, numberAt, textAt } from './json-line.ts';
import type { Usage } from './session.ts';

/** The answer to a prompt: the turn is over. */
export function acpTurnEnd(before: AcpState, result: Json, now: number): Step<AcpState> {
  const { state, signals } = flushText(before);
  const { costUsd, costTold } = state;
  const usage = usageOf(result, costUsd === undefined ? undefined : costSince(costTold, costUsd));
  return {
    state: { ...state, tools: {}, costTold: costUsd ?? costTold },
    signals: [
      ...signals,
      ...(usage ? [event({ type: 'usage', ...usage })] : []),
      verdict(verdictOf(state, textAt(result, 'stopReason'), now)),
    ],
  };
}

/** An agent that lost count, because it was killed, begins again from nothing. */
const costSince = (told: number, now: number): number => (now < told ? now : now - told);

function verdictOf(state: AcpState, stopReason: string | undefined, now: number): Verdict {
  if (state.hasSystemError) return reportedFailure({ kind: 'acp', message: state.text, now });
  const fail = (message: string, hint: string) => failed({ code: 'AGENT_FAILED', message, hint });
  switch (stopReason) {
    case 'end_turn':
      return { kind: 'ok', text: state.text };
    case 'cancelled':
      // Some agents stop when something is denied to them.
      return state.wasDenied ? fail('the agent stopped', 'allow what it needs') : { kind: 'stopped' };
    case 'max_tokens':
      return fail('the answer grew too long for the model', 'ask for less in one step');
    case 'max_turn_requests':
      return fail('the agent used up the requests of one turn', 'make the step smaller');
    case 'refusal':
      return fail(`the model refused${state.text ? `: ${state.text}` : ''}`, 'change the prompt');
    default:
      return failed(
        protocolError(`the agent stopped for an unknown reason: ${stopReason ?? 'none was given'}`),
      );
  }
}

/** In the answer itself, or where Gemini puts it; some agents tell nothing. */
function usageOf(result: Json, costUsd: number | undefined): Usage | undefined {
  const usage = at(result, 'usage');
  const quota = at(result, '_meta', 'quota', 'token_count');
  const outputTokens = numberAt(usage, 'outputTokens') ?? numberAt(quota, 'output_tokens');
  const given = numberAt(usage, 'inputTokens') ?? numberAt(quota, 'input_tokens');
  if (outputTokens === undefined || given === undefined) {
    return costUsd === undefined ? undefined : { inputTokens: 0, outputTokens: 0, cachedTokens: 0, costUsd };
  }
  // Agents differ in whether the input includes what was cached; the total does.
  const total = numberAt(usage, 'totalTokens');
  return {
    inputTokens: total === undefined ? given : Math.max(given, total - outputTokens),
    outputTokens,
    cachedTokens: numberAt(usage, 'cachedReadTokens') ?? 0,
    costUsd: costUsd ?? null,
  };
}
