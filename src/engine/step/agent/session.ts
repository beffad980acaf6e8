import type { AgentDefinition } from '../../../agents/agent.ts';
import { isStartRace } from '../../../agents/driver/failures.ts';
import type { PermissionPolicy } from '../../../agents/permissions/permissions.ts';
import type {
  HostAnswer,
  HostQuestion,
  ResumeRequest,
  SessionResult,
  Usage,
} from '../../../agents/session.ts';
import type { ErrorData } from '../../../core/errors.ts';
import type { JsonObject } from '../../../core/json.ts';
import { formatDuration, type Timestamp, toEpochMs } from '../../../core/time.ts';
import type { SpendingLimit } from '../../../workflow/model.ts';
import type { StepEnd } from '../../run/messages.ts';
import { unitOf } from '../../state/graph.ts';
import type { WorkLane } from '../contract.ts';
import { bestEffort, isBlind, isUsedUp } from '../outcome.ts';
import type { SessionAccount, SessionTurn } from './live-session.ts';

type SessionLane = Pick<WorkLane, 'effects' | 'runId' | 'lease' | 'unit' | 'record'>;

/** One conversation with an agent, from prompt to result. */
export interface SessionPlan {
  /** With the stall limit of the step, if it has one. */
  readonly agent: AgentDefinition;
  /** The number of the session within its attempt. */
  readonly number: number;
  readonly prompt: string;
  readonly outputSchema?: JsonObject | undefined;
  readonly folder: string;
  readonly env: Readonly<Record<string, string>>;
  readonly permissions: PermissionPolicy;
  readonly maxTurns?: number | undefined;
  readonly resume?: ResumeRequest | undefined;
  readonly left: SpendingLimit;
}

export type SessionEnd = SessionAccount &
  (
    | Pick<Extract<SessionResult, { kind: 'ok' }>, 'kind' | 'text' | 'structured'>
    | {
        readonly kind: 'failed';
        readonly error: ErrorData;
        /** The agent did not get as far as its session, and is to begin a new one. */
        readonly isLost: boolean;
      }
    | { readonly kind: 'paused'; readonly end: Extract<StepEnd, { kind: 'paused' }> }
  );

/**
 * Holds one session. It is in history before it begins, and its end is there before this returns, also if the lane is
 * cancelled meanwhile, which is then thrown.
 */
export async function runSession(lane: SessionLane, plan: SessionPlan): Promise<SessionEnd> {
  if (isUsedUp(plan.left)) return { ...nothingUsed, ...failure(overBudget('nothing of it was left')) };
  const { effects, runId, lease, unit } = lane;
  const { agent } = plan;
  const key = `${runId}:${unitOf(unit.step, unit.worker)}:${unit.attempt}:${plan.number}`;
  const places = agent.maxConcurrency;
  try {
    if (places !== undefined) await effects.takeSlot({ key, agent: agent.name, places, lease });
    return await converse(lane, plan, key);
  } finally {
    if (places !== undefined) await effects.releaseSlot({ key, agent: agent.name });
  }
}

async function converse(lane: SessionLane, plan: SessionPlan, key: string): Promise<SessionEnd> {
  const { effects, record, runId, lease, unit } = lane;
  const { agent, number, resume, left, folder, ...request } = plan;
  const chosen = resume === undefined && choosesId(agent) ? await effects.newSessionId() : undefined;
  const sessionId = resume?.sessionId ?? chosen;
  await record({
    type: 'session.started',
    data: {
      agent: agent.name,
      kind: agent.kind,
      number,
      ...(sessionId === undefined ? {} : { sessionId }),
      ...(resume === undefined ? {} : { resumes: true }),
    },
  });
  const start = {
    runId,
    lease,
    unit,
    number,
    left,
    request: { ...request, agent, cwd: folder, resume, sessionId: chosen },
  };
  await effects.openSession({ key, start });
  let turn: Extract<SessionTurn, { kind: 'end' }>;
  try {
    turn = await turnsUntilEnd(lane, plan, key);
  } catch (thrown) {
    // The lane was cancelled, or the host failed: what the session has used is still told.
    await bestEffort(
      async () => endSession(lane, await effects.closeSession({ key, folder }), 'cancelled'),
      ({ message }) => effects.notice(`${unit.step}: the end of a session could not be noted: ${message}`),
    );
    throw thrown;
  }
  const account = await effects.closeSession({ key, folder });
  if (isBlind(left, account.usage)) effects.noticeBlind(runId, agent.name);
  const end = await endOf(lane, plan, turn);
  await endSession(lane, account, outcomeOf(end, turn));
  return { ...account, ...end };
}

async function turnsUntilEnd(
  { effects, record }: SessionLane,
  { folder }: SessionPlan,
  key: string,
): Promise<Extract<SessionTurn, { kind: 'end' }>> {
  let answer: HostAnswer | undefined;
  for (;;) {
    const turn = await effects.nextTurn({ key, folder, ...(answer ? { answer } : {}) });
    answer = undefined;
    if (turn.kind === 'end') return turn;
    if (turn.kind === 'question') answer = answerTo(turn.question);
    else await record({ type: 'session.named', data: { sessionId: turn.sessionId } });
  }
}

/** Nobody is there to be asked, and a limit is waited for without keeping the agent alive. */
const answerTo = (question: HostQuestion): HostAnswer =>
  question.kind === 'limit'
    ? { kind: 'stop' }
    : { kind: 'deny', message: `${question.tool} is not allowed, and nobody is there to be asked.` };

async function endOf(
  { effects }: SessionLane,
  { agent, number, resume }: SessionPlan,
  { result, cut, hasStarted }: Extract<SessionTurn, { kind: 'end' }>,
) {
  if (cut?.kind === 'budget') return failure(overBudget(cut.message));
  switch (result.kind) {
    case 'ok':
      return {
        kind: 'ok',
        text: result.text,
        ...(result.structured === undefined ? {} : { structured: result.structured }),
      } as const;
    case 'failed':
      return failure(result.error, !hasStarted && canBeginAnew(result.error, resume));
    case 'cancelled':
      return failure(cut ? overtime(agent) : endedItself);
    case 'limit': {
      const { resetsAt, error } = result;
      const delayMs = pauseMs({ resetsAt, now: await effects.now(), times: number + 1 });
      return { kind: 'paused', end: { kind: 'paused', reason: error.message, delayMs } } as const;
    }
  }
}

const canBeginAnew = (error: ErrorData, resume: ResumeRequest | undefined): boolean =>
  resume === undefined ? isStartRace(error) : mayBeLost.has(error.code);

const mayBeLost: ReadonlySet<string> = new Set(['AGENT_FAILED', 'AGENT_PROTOCOL']);

const failure = (error: ErrorData, isLost = false) => ({ kind: 'failed', error, isLost }) as const;

function outcomeOf(
  { kind }: { readonly kind: SessionEnd['kind'] },
  { result }: Extract<SessionTurn, { kind: 'end' }>,
): 'ok' | 'failed' | 'cancelled' | 'limit' {
  if (kind === 'paused') return 'limit';
  return kind === 'failed' && result.kind === 'cancelled' ? 'cancelled' : kind;
}

const endSession = (
  { record }: SessionLane,
  { usage, denials, sessionId }: SessionAccount,
  outcome: 'ok' | 'failed' | 'cancelled' | 'limit',
): Promise<void> =>
  record({
    type: 'session.ended',
    data: {
      outcome,
      ...(sessionId === undefined ? {} : { sessionId }),
      usage,
      ...(denials.length === 0 ? {} : { denials: [...denials] }),
    },
  });

/** Only Claude Code lets us say which session it shall be. */
const choosesId = ({ kind }: AgentDefinition): boolean => kind === 'claude';

/** Whether what was said before is still known to the agent when it is started again. */
export const canResume = ({ kind }: AgentDefinition): boolean =>
  kind === 'claude' || kind === 'codex' || kind === 'acp';

const noUsage: Usage = { inputTokens: 0, outputTokens: 0, cachedTokens: 0, costUsd: null };
const nothingUsed: SessionAccount = { usage: noUsage, denials: [] };

const overBudget = (message: string): ErrorData => ({
  code: 'BUDGET_EXCEEDED',
  message: `the budget is used up: ${message}`,
  hint: 'raise `budget`, or make the step smaller; what was done is kept in the workspace',
});

const overtime = ({ name, timeoutMs = 0 }: AgentDefinition): ErrorData => ({
  code: 'TIMEOUT',
  message: `the session took longer than ${formatDuration(timeoutMs)}`,
  hint: `raise \`timeout\` of the agent \`${name}\`, or make the step smaller`,
});

const endedItself: ErrorData = {
  code: 'AGENT_FAILED',
  message: 'the session was cancelled, but nobody cancelled it',
  hint: 'run the step again',
};

const firstMs = 5 * 60_000;
const longestMs = 60 * 60_000;
const leastMs = 1000;

interface PauseOf {
  /** When the limit resets, if the agent said so. */
  readonly resetsAt?: Timestamp | undefined;
  readonly now: number;
  /** How many sessions of the attempt there have been, from 1. */
  readonly times: number;
}

/**
 * How long to wait for a limit to reset. A moment that has passed, or that nobody named, is no reason to ask again and
 * again: each time the wait is twice as long.
 */
export function pauseMs({ resetsAt, now, times }: PauseOf): number {
  const doubled = (ms: number): number => Math.min(longestMs, ms * 2 ** Math.max(0, times - 1));
  const untilReset = resetsAt === undefined ? Number.NaN : toEpochMs(resetsAt) - now;
  if (Number.isNaN(untilReset)) return doubled(firstMs);
  return untilReset >= leastMs ? untilReset : doubled(leastMs);
}
