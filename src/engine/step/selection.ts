import { resolve } from 'node:path';
import type { ResumeRequest } from '../../agents/session.ts';
import { type ErrorData, toErrorData } from '../../core/errors.ts';
import type { Judge } from '../../workflow/model.ts';
import { unitFileName } from '../log-files.ts';
import type { StepEnd } from '../run/messages.ts';
import { failedWith } from '../work/ends.ts';
import { policyOf } from '../work/policy.ts';
import { judgePrompt, type Shown, verdictOf, verdictSchema } from '../work/selection-words.ts';
import { workVariables } from '../work/words.ts';
import { agentNamed } from './agent/conversation.ts';
import { answerPrompt, toldAgain } from './agent/prompts.ts';
import { canResume, runSession, type SessionEnd } from './agent/session.ts';
import type { FinishedWorker, SelectionLane } from './contract.ts';
import { leftAfter } from './outcome.ts';

export type Judgement =
  | { readonly kind: 'chosen'; readonly winner: number; readonly reason: string }
  | { readonly kind: 'ended'; readonly end: StepEnd };

const longestDiff = 1024 * 1024;
/** A judge that answers with nonsense is told so once. */
const tries = 2;

/** Lets an agent choose. It sees what the candidates did in a folder of its own, in which nothing matters. */
export async function askJudge(
  lane: SelectionLane,
  judge: Judge,
  candidates: readonly FinishedWorker[],
): Promise<Judgement> {
  const { effects, runId, unit } = lane;
  agentNamed(effects, judge.agent);
  const shown = await show(lane, candidates);
  const files = Object.fromEntries(
    shown.flatMap(({ worker, output, diff }) => [
      [`candidate_${worker}.json`, JSON.stringify(output, undefined, 2)],
      [`candidate_${worker}.diff`, diff],
    ]),
  );
  const folder = await effects.writeScratch({ runId, name: `${unitFileName(unit)}.judge`, files });
  try {
    return await judgeIn(lane, { judge, shown, folder });
  } finally {
    await effects.removeScratch(folder);
  }
}

async function show(
  { effects, base }: SelectionLane,
  candidates: readonly FinishedWorker[],
): Promise<readonly Shown[]> {
  const shown: Shown[] = [];
  for (const { worker, output, workspace, base: own } of candidates) {
    const from = own ?? base?.commit;
    const diff =
      workspace === undefined || from === undefined
        ? ''
        : await effects.patchOf({
            path: resolve(effects.projectRoot, workspace),
            base: from,
            limit: longestDiff,
          });
    shown.push({ worker, output, diff });
  }
  return shown;
}

async function judgeIn(
  lane: SelectionLane,
  {
    judge,
    shown,
    folder,
  }: { readonly judge: Judge; readonly shown: readonly Shown[]; readonly folder: string },
): Promise<Judgement> {
  const { effects, runId, unit, scope, model } = lane;
  const agent = agentNamed(effects, judge.agent);
  const workers = shown.map(({ worker }) => worker);
  const whole = judgePrompt({
    task: model.body.kind === 'agent' ? taskOf(lane) : undefined,
    wish: judge.prompt?.(scope),
    shown,
  });
  const plan = {
    agent,
    outputSchema: verdictSchema(workers),
    folder,
    env: workVariables({ runId, unit, cwd: folder, steps: scope.steps }),
    permissions: policyOf({ agent, checks: [], readonly: true }),
  };
  let { left } = lane;
  let message: { readonly prompt: string; readonly resume?: ResumeRequest } = { prompt: whole };
  for (let number = 0; ; number++) {
    const end = await runSession(lane, { ...plan, ...message, number, left });
    if (end.kind === 'paused') return { kind: 'ended', end: end.end };
    left = leftAfter(left, end.usage);
    const said = end.kind === 'ok' ? verdictOf(end.structured, workers) : end.error;
    if (typeof said === 'object' && 'winner' in said) return { kind: 'chosen', ...said };
    const error: ErrorData = typeof said === 'string' ? { code: 'OUTPUT_INVALID', message: said } : said;
    if (error.code !== 'OUTPUT_INVALID' || number + 1 >= tries)
      return { kind: 'ended', end: failedWith(judgeError(error, judge.agent)) };
    message = again(end, { whole, error, remembers: canResume(agent) });
  }
}

/** A prompt made of a worker's own values has none here. */
function taskOf({ model, scope }: SelectionLane): string | undefined {
  try {
    return model.body.kind === 'agent' ? model.body.prompt(scope) : undefined;
  } catch (thrown) {
    return `(it differs from candidate to candidate: ${toErrorData(thrown).message})`;
  }
}

const again = (
  { sessionId, usage }: SessionEnd,
  {
    whole,
    error,
    remembers,
  }: { readonly whole: string; readonly error: ErrorData; readonly remembers: boolean },
) =>
  sessionId !== undefined && remembers
    ? { prompt: answerPrompt(error), resume: { sessionId, usage } }
    : { prompt: toldAgain(whole, answerPrompt(error)) };

const judgeError = (error: ErrorData, agent: string): ErrorData => ({
  ...error,
  message: `the judge ${agent} chose none: ${error.message}`,
});
