import { type Denial, permissionDenied } from '../../../agents/index.ts';
import {
  type ErrorData,
  type EventOf,
  type Json,
  RepriseError,
  toErrorData,
  toJson,
} from '../../../core/index.ts';
import type { AgentBody } from '../../../workflow/index.ts';
import { commandError, type FailedCommand, runInTurn } from '../commands.ts';
import type { WorkLane, WorkNote } from '../contract.ts';
import { failedWith, type WorkOutcome } from '../outcome.ts';
import type { WorkLocation } from '../workspace.ts';
import { answerPrompt, attemptPrompt, Conversation, checkPrompt, SessionCount } from './conversation.ts';
import type { SessionEnd } from './session.ts';

/**
 * Runs sessions until the agent's answer is valid and its checks pass, or `rework` is used up. The changes are in the
 * workspace; the answer is the output.
 */
export async function agentWork(
  lane: WorkLane,
  body: AgentBody,
  location: WorkLocation,
): Promise<WorkOutcome> {
  const { scope, known } = lane;
  const conversation = new Conversation(lane, {
    location,
    count: new SessionCount(lane),
    agent: body.agent,
    prompt: attemptPrompt(body.prompt(scope), known.lastError),
    env: body.env(scope),
    permissions: body.permissions,
    checks: body.work.checks,
    output: body.output,
    maxTurns: body.maxTurns,
  });
  let message = conversation.first();
  for (let left = body.rework - (message.earlier ?? 0); ; left--) {
    const end = await conversation.send(message);
    if (end.kind === 'paused') return { end: end.end, summary: '' };
    const judged =
      end.kind === 'failed' ? { error: end.error, checks: [] } : await judge(lane, body, { location, end });
    if (judged.error === undefined) {
      if (judged.checks.length > 0) lane.conclude(checked(judged));
      return {
        end: { kind: 'completed', output: judged.output },
        summary: end.kind === 'ok' ? end.text : '',
      };
    }
    const { error } = judged;
    const news = judged.check ? checkPrompt(toFailedCheck(judged.check)) : isFixable(error);
    if (left <= 0 || news === undefined) {
      if (end.kind === 'ok' || news !== undefined) lane.conclude(checked(judged));
      return { end: failedWith(error), summary: error.message };
    }
    await lane.record(checked(judged, body.rework - left + 1));
    message = conversation.after(end, news);
  }
}

type CheckedData = EventOf<'work.checked'>['data'];

type JudgedAttempt = Pick<CheckedData, 'checks'> &
  (
    | { readonly error?: undefined; readonly output: Json }
    | { readonly error: ErrorData; readonly check?: FailedCommand | undefined }
  );

/** Returns the event for a judgement. `rework`: number of the rework that follows. */
const checked = ({ checks, error }: JudgedAttempt, rework?: number): WorkNote => ({
  type: 'work.checked',
  data: {
    passed: error === undefined,
    checks,
    ...(error ? { error } : {}),
    ...(rework === undefined ? {} : { rework }),
  },
});

async function judge(
  lane: WorkLane,
  body: AgentBody,
  { location, end }: { readonly location: WorkLocation; readonly end: Extract<SessionEnd, { kind: 'ok' }> },
): Promise<JudgedAttempt> {
  let output: Json;
  try {
    output = outputOf(body, end);
  } catch (thrown) {
    return { checks: [], error: { ...toErrorData(thrown), code: 'OUTPUT_INVALID' } };
  }
  const commands = body.work.checks.map(({ text, command }) => ({ text, command: command(lane.scope) }));
  const check = await runInTurn(lane, { location, what: 'check', commands });
  const passed = commands.slice(0, check?.index).map(({ text }) => ({ command: text, passed: true }));
  if (!check) return { checks: passed, output };
  const { exitCode } = check.error;
  const failed = { command: check.text, passed: false, ...(exitCode === undefined ? {} : { exitCode }) };
  return { checks: [...passed, failed], error: checkError(check, end.denials), check };
}

function outputOf({ output }: AgentBody, end: Extract<SessionEnd, { kind: 'ok' }>): Json {
  if (!output) return { text: end.text };
  return toJson(output.parse(end.structured ?? parseText(end.text)));
}

function parseText(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    throw new RepriseError(
      'OUTPUT_INVALID',
      'the agent did not answer with JSON, but the step declares an output',
      {
        hint: 'describe the expected answer in the prompt',
      },
    );
  }
}

const isFixable = (error: ErrorData): string | undefined =>
  error.code === 'OUTPUT_INVALID' ? answerPrompt(error) : undefined;

const toFailedCheck = ({ text, error, tail }: FailedCommand) => ({ text, exitCode: error.exitCode, tail });

/** Reports a denied tool, if a rule would allow it, as the most likely cause of a failed check. */
function checkError(check: FailedCommand, denials: readonly Denial[]): ErrorData {
  const error = commandError('CHECK_FAILED', 'the check', check);
  const denied = denials.findLast(({ lineToAdd }) => lineToAdd !== undefined);
  return denied ? permissionDenied(denied, error.message) : error;
}
