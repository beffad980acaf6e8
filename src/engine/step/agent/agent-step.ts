import { permissionDenied } from '../../../agents/driver/failures.ts';
import type { Denial } from '../../../agents/session.ts';
import { type ErrorData, RepriseError, toErrorData } from '../../../core/errors.ts';
import { type Json, toJson } from '../../../core/json.ts';
import type { AgentBody } from '../../../workflow/model.ts';
import { commandError, type FailedCommand, runInTurn } from '../commands.ts';
import type { WorkLane } from '../contract.ts';
import { type Done, failedWith } from '../outcome.ts';
import type { Place } from '../workspace.ts';
import { SessionCount, Talks } from './conversation.ts';
import { answerPrompt, attemptPrompt, checkPrompt } from './prompts.ts';
import type { SessionEnd } from './session.ts';

/**
 * The work of an agent: sessions until its answer can be used and its checks pass, or nothing of `rework` is left.
 * What it does is in its workspace; what it says is the output.
 */
export async function agentWork(lane: WorkLane, body: AgentBody, place: Place): Promise<Done> {
  const { scope, known } = lane;
  const talks = new Talks(lane, {
    place,
    count: new SessionCount(lane),
    agent: body.agent,
    prompt: attemptPrompt(body.prompt(scope), known.lastError),
    env: body.env(scope),
    permissions: body.permissions,
    checks: body.work.checks,
    output: body.output,
    maxTurns: body.maxTurns,
  });
  let message = talks.first();
  for (let left = body.rework; ; left--) {
    const end = await talks.hold(message);
    if (end.kind === 'paused') return { end: end.end, summary: '' };
    const judged = end.kind === 'failed' ? end : await judge(lane, { body, place, end });
    if (judged.kind === 'done') {
      return {
        end: { kind: 'completed', output: judged.output },
        summary: end.kind === 'ok' ? end.text : '',
      };
    }
    const news = judged.kind === 'failed' ? mendable(judged.error) : checkPrompt(toFailedCheck(judged.check));
    if (left <= 0 || news === undefined) {
      const error = judged.kind === 'failed' ? judged.error : checkError(judged.check, end.denials);
      return { end: failedWith(error), summary: error.message };
    }
    message = talks.after(end, news);
  }
}

type Judged =
  | { readonly kind: 'done'; readonly output: Json }
  | { readonly kind: 'failed'; readonly error: ErrorData }
  | { readonly kind: 'unchecked'; readonly check: FailedCommand };

async function judge(
  lane: WorkLane,
  {
    body,
    place,
    end,
  }: { readonly body: AgentBody; readonly place: Place; readonly end: Extract<SessionEnd, { kind: 'ok' }> },
): Promise<Judged> {
  let output: Json;
  try {
    output = outputOf(body, end);
  } catch (thrown) {
    return { kind: 'failed', error: { ...toErrorData(thrown), code: 'OUTPUT_INVALID' } };
  }
  const commands = body.work.checks.map(({ text, command }) => ({ text, command: command(lane.scope) }));
  const check = await runInTurn(lane, { place, what: 'check', commands });
  return check ? { kind: 'unchecked', check } : { kind: 'done', output };
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
      'the agent answered without data, although the step declares an output',
      {
        hint: 'say in the prompt what the answer must look like',
      },
    );
  }
}

const mendable = (error: ErrorData): string | undefined =>
  error.code === 'OUTPUT_INVALID' ? answerPrompt(error) : undefined;

const toFailedCheck = ({ text, error, tail }: FailedCommand) => ({ text, exitCode: error.exitCode, tail });

/** Work that fails its check after something was denied most likely lacks that, and a line would change it. */
function checkError(check: FailedCommand, denials: readonly Denial[]): ErrorData {
  const error = commandError('CHECK_FAILED', 'the check', check);
  const denied = denials.findLast(({ lineToAdd }) => lineToAdd !== undefined);
  return denied ? permissionDenied(denied, error.message) : error;
}
