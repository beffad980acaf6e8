import {
  type AgentDefinition,
  type HostAnswer,
  type HostQuestion,
  isStartRace,
  type PermissionPolicy,
  type ResumeRequest,
  type SessionResult,
  type Usage,
} from '../../../agents/index.ts';
import {
  type ErrorData,
  type EventOf,
  formatDuration,
  type JsonObject,
  type Timestamp,
  toEpochMs,
} from '../../../core/index.ts';
import type { SpendingLimit } from '../../../workflow/index.ts';
import type { StepEnd } from '../../run/messages.ts';
import { unitOf } from '../../state/graph.ts';
import type { WorkLane } from '../contract.ts';
import { bestEffort, isBlind, isUsedUp } from '../outcome.ts';
import type { SessionAccount, SessionTurn } from './live-session.ts';

type SessionLane = Pick<WorkLane, 'effects' | 'runId' | 'lease' | 'unit' | 'record'>;

/** A session with an agent, from prompt to result. */
export interface SessionPlan {
  /** Agent, with the stall timeout of the step if it has one. */
  readonly agent: AgentDefinition;
  /** Number of the session within its attempt. */
  readonly number: number;
  readonly prompt: string;
  /** Last part of the prompt, which shows how to end with `<next>`. */
  readonly ending?: string | undefined;
  readonly outputSchema?: JsonObject | undefined;
  readonly folder: string;
  /** Commit that the workspace started from. */
  readonly base?: string | undefined;
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
        /** Whether the session never started, so that a new one can replace it. */
        readonly isLost: boolean;
      }
    /** The session can be resumed later. */
    | { readonly kind: 'paused'; readonly end: Extract<StepEnd, { kind: 'paused' | 'suspended' }> }
  );

/**
 * Runs one session. Its start is in history before it begins, and its end is there before this returns or throws, even
 * if the lane is cancelled meanwhile.
 */
export async function runSession(lane: SessionLane, plan: SessionPlan): Promise<SessionEnd> {
  if (isUsedUp(plan.left))
    return { ...nothingUsed, ...exhausted(overBudget('nothing is left for another session')) };
  const { effects, runId, lease, unit } = lane;
  const { agent } = plan;
  const key = `${runId}:${unitOf(unit.step, unit.worker)}:${unit.attempt}:${plan.number}`;
  const places = agent.maxConcurrency;
  try {
    if (places !== undefined) await effects.takeSlot({ key, agent: agent.name, places, lease, unit });
    return await converse(lane, plan, key);
  } finally {
    if (places !== undefined) await effects.releaseSlot({ key, agent: agent.name });
  }
}

async function converse(lane: SessionLane, plan: SessionPlan, key: string): Promise<SessionEnd> {
  const { effects, record, runId, lease, unit } = lane;
  const { agent, number, resume, left, folder, ending, ...request } = plan;
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
    ...(ending === undefined ? {} : { ending }),
    request: { ...request, agent, cwd: folder, resume, sessionId: chosen },
  };
  await effects.openSession({ key, start });
  let turn: Extract<SessionTurn, { kind: 'end' }>;
  try {
    turn = await turnsUntilEnd(lane, plan, key);
  } catch (thrown) {
    // The lane was cancelled or the host failed. The usage of the session is recorded all the same.
    await bestEffort(
      async () => endSession(lane, await effects.closeSession({ key, folder }), 'cancelled'),
      ({ message }) => effects.notice(`${unit.step}: could not record the end of a session: ${message}`),
    );
    throw thrown;
  }
  const account = await effects.closeSession({ key, folder });
  // Some agents report their cost at the end of a turn, which a cancelled one never reached.
  if (turn.result.kind !== 'cancelled' && isBlind(left, account.usage))
    effects.noticeBlind(runId, agent.name);
  const end = await endOf(lane, plan, turn);
  await endSession(lane, account, outcomeOf(end, turn), resultOf(end, turn));
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

/**
 * Denies every question, because sessions are unattended, and stops at a rate limit instead of keeping the agent
 * alive.
 */
const answerTo = (question: HostQuestion): HostAnswer =>
  question.kind === 'limit'
    ? { kind: 'stop' }
    : {
        kind: 'deny',
        message: `${question.tool} is not allowed, and this session runs unattended: no one can approve it.`,
      };

async function endOf(
  { effects }: SessionLane,
  { agent, number, resume }: SessionPlan,
  { result, cut, hasStarted }: Extract<SessionTurn, { kind: 'end' }>,
) {
  if (cut?.kind === 'budget') return exhausted(overBudget(cut.message));
  if (cut?.kind === 'suspend' && result.kind !== 'ok') return stopped;
  switch (result.kind) {
    case 'ok':
      return {
        kind: 'ok',
        text: result.text,
        ...(result.structured === undefined ? {} : { structured: result.structured }),
      } as const;
    case 'failed':
      if (result.error.code === 'BUDGET_EXCEEDED') return exhausted(result.error);
      return failure(result.error, !hasStarted && canStartOver(result.error, resume));
    case 'cancelled':
      return failure(cut ? overtime(agent) : cancelledByAgent);
    case 'limit': {
      const { resetsAt, error } = result;
      const delayMs = pauseMs({ resetsAt, now: await effects.now(), times: number + 1 });
      return { kind: 'paused', end: { kind: 'paused', reason: error.message, delayMs } } as const;
    }
  }
}

const canStartOver = (error: ErrorData, resume: ResumeRequest | undefined): boolean =>
  resume === undefined ? isStartRace(error) : mayBeLost.has(error.code);

const mayBeLost: ReadonlySet<string> = new Set(['AGENT_FAILED', 'AGENT_PROTOCOL']);

const stopped = { kind: 'paused', end: { kind: 'suspended' } } as const;

/** An exhausted budget suspends the run, so that a higher budget continues the session. */
const exhausted = (error: ErrorData) => ({ kind: 'paused', end: { kind: 'suspended', error } }) as const;

const failure = (error: ErrorData, isLost = false) => ({ kind: 'failed', error, isLost }) as const;

function outcomeOf(
  end: Awaited<ReturnType<typeof endOf>>,
  { result }: Extract<SessionTurn, { kind: 'end' }>,
): SessionEnded['outcome'] {
  if (end.kind === 'paused') return end.end.kind === 'suspended' ? 'suspended' : 'limit';
  return end.kind === 'failed' && result.kind === 'cancelled' ? 'cancelled' : end.kind;
}

const endSession = (
  { record }: SessionLane,
  { usage, denials, sessionId }: SessionAccount,
  outcome: SessionEnded['outcome'],
  result: Pick<SessionEnded, 'answer' | 'error'> = {},
): Promise<void> =>
  record({
    type: 'session.ended',
    data: {
      outcome,
      ...(sessionId === undefined ? {} : { sessionId }),
      usage,
      ...(denials.length === 0 ? {} : { denials: [...denials] }),
      ...result,
    },
  });

type SessionEnded = EventOf<'session.ended'>['data'];

/**
 * Returns the part of a result that makes it unnecessary to repeat the session after a crash, or after its last message
 * has exhausted the budget.
 */
function resultOf(
  end: Awaited<ReturnType<typeof endOf>>,
  { result }: Extract<SessionTurn, { kind: 'end' }>,
): Pick<SessionEnded, 'answer' | 'error'> {
  if (end.kind === 'failed') return end.isLost ? {} : { error: end.error };
  if (result.kind !== 'ok') return {};
  const { text, structured } = result;
  return { answer: { text, ...(structured === undefined ? {} : { structured }) } };
}

/** Only Claude Code accepts a session id. */
const choosesId = ({ kind }: AgentDefinition): boolean => kind === 'claude';

/** Whether the agent can resume a session after its process has exited. */
export const canResume = ({ kind }: AgentDefinition): boolean =>
  kind === 'claude' || kind === 'codex' || kind === 'acp';

const noUsage: Usage = { inputTokens: 0, outputTokens: 0, cachedTokens: 0, costUsd: null };
const nothingUsed: SessionAccount = { usage: noUsage, denials: [] };

const overBudget = (message: string): ErrorData => ({
  code: 'BUDGET_EXCEEDED',
  message: `the budget is exhausted: ${message}`,
  hint: 'raise `budget`, or make the step smaller; its work so far is kept in the workspace',
});

const overtime = ({ name, timeoutMs = 0 }: AgentDefinition): ErrorData => ({
  code: 'TIMEOUT',
  message: `the session took longer than ${formatDuration(timeoutMs)}`,
  hint: `raise \`timeout\` of the agent \`${name}\`, or make the step smaller`,
});

const cancelledByAgent: ErrorData = {
  code: 'AGENT_FAILED',
  message: 'the agent cancelled its session, although Reprise did not ask it to',
  hint: 'run the step again',
};

const initialPauseMs = 5 * 60_000;
const maxPauseMs = 60 * 60_000;
const minPauseMs = 1000;

interface PauseOf {
  /** Time at which the limit resets, if the agent reported it. */
  readonly resetsAt?: Timestamp | undefined;
  readonly now: number;
  /** Number of sessions in this attempt so far, including this one. */
  readonly times: number;
}

/**
 * Returns how long to wait for a rate limit to reset. Without a reset time, or with one in the past, the wait doubles
 * with every session, so that the agent is not called in a loop.
 */
export function pauseMs({ resetsAt, now, times }: PauseOf): number {
  const doubled = (ms: number): number => Math.min(maxPauseMs, ms * 2 ** Math.max(0, times - 1));
  const untilReset = resetsAt === undefined ? Number.NaN : toEpochMs(resetsAt) - now;
  if (Number.isNaN(untilReset)) return doubled(initialPauseMs);
  return untilReset >= minPauseMs ? untilReset : doubled(minPauseMs);
}
