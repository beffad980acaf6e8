import {
  type AgentDefinition,
  addUsage,
  hasPermissions,
  noUsage,
  type PermissionPolicy,
  permissionProblem,
  type ResumeRequest,
  type Usage,
} from '../../../agents/index.ts';
import { type ErrorData, nearest, RepriseError } from '../../../core/index.ts';
import type { AgentOutput, Command, StepPermissions } from '../../../workflow/index.ts';
import { fenced } from '../commands.ts';
import type { KnownAnswer, KnownSession, KnownWorkspace, WorkLane } from '../contract.ts';
import { remainingAfter } from '../outcome.ts';
import type { WorkLocation } from '../workspace.ts';
import { canResume, runSession, type SessionEnd, type SessionPlan } from './session.ts';

interface PolicyOf {
  readonly agent: AgentDefinition;
  readonly step?: StepPermissions | undefined;
  /** Text of the commands that check the work. The agent may run them too. */
  readonly checks: readonly string[];
  /** Whether the workspace is read-only. */
  readonly readonly: boolean;
}

/**
 * Returns the permissions of an agent in a step. Sessions are unattended, so everything that is not allowed is denied.
 */
export const policyOf = ({ agent, step, checks, readonly }: PolicyOf): PermissionPolicy => ({
  agent: agent.name,
  ...(enforced(agent, step) ? { isWritten: true } : {}),
  preset: readonly ? 'read-only' : (step?.preset ?? agent.permissions),
  allow: union(agent.allow, step?.allow),
  deny: union(agent.deny, step?.deny),
  checks,
  otherwise: 'deny',
});

/** Whether permissions are written. Throws DEFINITION_INVALID if this kind of agent cannot enforce them. */
function enforced(agent: AgentDefinition, step: StepPermissions | undefined): boolean {
  const problem = permissionProblem(agent, step);
  if (problem) throw new RepriseError('DEFINITION_INVALID', problem.message, problem);
  return hasPermissions(agent, step);
}

const union = (first: readonly string[], second: readonly string[] = []): readonly string[] => [
  ...new Set([...first, ...second]),
];

/** Returns the agent of that name. Throws AGENT_UNKNOWN. */
export function agentNamed(
  { agents }: { readonly agents: ReadonlyMap<string, AgentDefinition> },
  name: string,
) {
  const agent = agents.get(name);
  if (agent) return agent;
  const suggestion = nearest(name, agents.keys());
  throw new RepriseError('AGENT_UNKNOWN', `there is no agent named \`${name}\``, {
    hint: suggestion
      ? `did you mean \`${suggestion}\`?`
      : `define it in .reprise/agents/${name}.md, or under \`agents\` in reprise.yaml`,
  });
}

/** The next prompt for an agent, and the session to resume with it. */
export interface AgentMessage {
  readonly prompt: string;
  readonly resume?: ResumeRequest | undefined;
  /** Result that history contains. The agent is not asked again. */
  readonly answered?: KnownAnswer | undefined;
  /** Number of results that precede this message in a conversation that a crash interrupted. */
  readonly earlier?: number | undefined;
}

/** Session numbers and remaining budget, shared by all sessions of an attempt. */
export class SessionCount {
  #number: number;
  #left: WorkLane['left'];
  #answer: KnownAnswer | undefined;

  constructor({ known, left }: Pick<WorkLane, 'known' | 'left'>) {
    this.#number = known.sessions;
    this.#left = left;
    this.#answer = known.answer;
  }

  get left(): WorkLane['left'] {
    return this.#left;
  }

  next(): number {
    return this.#number++;
  }

  /** Returns, once, the result that the agent gave before a crash. */
  takeAnswer(agent: string): KnownAnswer | undefined {
    const answer = this.#answer?.agent === agent ? this.#answer : undefined;
    if (answer) this.#answer = undefined;
    return answer;
  }

  spend(usage: Usage): void {
    this.#left = remainingAfter(this.#left, usage);
  }
}

type ConversationLane = Omit<WorkLane, 'workOf'>;

interface ConversationOptions {
  readonly location: Pick<WorkLocation, 'folder' | 'env' | 'isReadonly'> & {
    readonly workspace?: Pick<KnownWorkspace, 'base'> | undefined;
  };
  readonly count: SessionCount;
  /** Name of the agent. */
  readonly agent: string;
  /** Full prompt, for a session that knows nothing of the task. */
  readonly prompt: string;
  /** Last part of every prompt, which shows how to end with `<next>`. */
  readonly ending?: string | undefined;
  readonly env?: Readonly<Record<string, string>> | undefined;
  readonly permissions?: StepPermissions | undefined;
  /** Commands that check the work. The agent may run them too. */
  readonly checks?: readonly Pick<Command, 'text'>[] | undefined;
  readonly output?: Pick<AgentOutput, 'schema'> | undefined;
  readonly maxTurns?: number | undefined;
}

/** A conversation with one agent, across any number of sessions. */
export class Conversation {
  readonly #lane: ConversationLane;
  readonly #agent: AgentDefinition;
  readonly #options: ConversationOptions;
  readonly #plan: Omit<SessionPlan, 'number' | 'prompt' | 'resume' | 'left'>;
  /** Usage of the current session, including its earlier parts. */
  #used: Usage | undefined;

  /** Throws AGENT_UNKNOWN. */
  constructor(lane: ConversationLane, options: ConversationOptions) {
    const { effects, model } = lane;
    const { location, output, maxTurns, ending } = options;
    const named = agentNamed(effects, options.agent);
    const stallTimeoutMs = model.timeout.stallMs ?? named.stallTimeoutMs;
    const agent = stallTimeoutMs === undefined ? named : { ...named, stallTimeoutMs };
    this.#lane = lane;
    this.#agent = agent;
    this.#options = options;
    this.#plan = {
      agent,
      folder: location.folder,
      ...(location.workspace ? { base: location.workspace.base } : {}),
      env: { ...location.env, ...options.env },
      permissions: policyOf({
        agent,
        step: options.permissions,
        checks: (options.checks ?? []).map(({ text }) => text),
        readonly: location.isReadonly,
      }),
      ...(ending === undefined ? {} : { ending }),
      ...(output ? { outputSchema: output.schema } : {}),
      ...(maxTurns === undefined ? {} : { maxTurns }),
    };
  }

  /** Returns the message that starts a new session. */
  start(): AgentMessage {
    return { prompt: this.#options.prompt };
  }

  /**
   * Returns the message that continues after a crash or a rate limit: with the result of the session, or else by
   * resuming it. Otherwise returns the one that starts a session.
   */
  first(): AgentMessage {
    const { session, answers } = this.#lane.known;
    const answered = this.#options.count.takeAnswer(this.#agent.name);
    if (answered) return { ...this.start(), answered, earlier: answers - 1 };
    return { ...(this.#resume(session, goOnPrompt) ?? this.start()), earlier: answers };
  }

  /** Returns the news for an earlier session, preceded by the full prompt if the session cannot be resumed. */
  again(session: KnownSession | undefined, news: string): AgentMessage {
    const answered = this.#options.count.takeAnswer(this.#agent.name);
    const message = this.#resume(session, news) ?? { prompt: repeatedPrompt(this.#options.prompt, news) };
    return answered ? { ...message, answered } : message;
  }

  /** Returns the news for the session that just ended, preceded by the full prompt if it cannot be resumed. */
  after({ sessionId }: SessionEnd, news: string): AgentMessage {
    return sessionId !== undefined && canResume(this.#agent)
      ? { prompt: news, resume: { sessionId, usage: this.#used } }
      : { prompt: repeatedPrompt(this.#options.prompt, news) };
  }

  /** Records that the answer of the agent is invalid, and that the agent is asked again for the nth time. */
  reworks(error: ErrorData, rework: number): Promise<void> {
    return this.#lane.record({ type: 'work.checked', data: { passed: false, checks: [], error, rework } });
  }

  async send(message: AgentMessage): Promise<SessionEnd> {
    if (message.answered) {
      this.#used = message.answered.usage;
      return endOfAnswered(message.answered);
    }
    const end = await this.#hold(message);
    if (end.kind !== 'failed' || !end.isLost) return end;
    const { effects, unit } = this.#lane;
    if (!message.resume) {
      effects.notice(`${unit.step}: agent ${this.#agent.name} failed to start; trying once more`);
      return this.#hold(message);
    }
    effects.notice(
      `${unit.step}: agent ${this.#agent.name} could not resume its session; starting a new one`,
    );
    const isNews = message.prompt !== goOnPrompt;
    const { prompt } = this.#options;
    return this.#hold({ prompt: isNews ? repeatedPrompt(prompt, message.prompt) : prompt });
  }

  #resume(session: KnownSession | undefined, prompt: string): AgentMessage | undefined {
    if (!session || session.agent !== this.#agent.name || !canResume(this.#agent)) return undefined;
    // Without an ended part, nothing of the session has been counted yet, and agents that report totals report all of it.
    const usage = this.#used ?? session.usage ?? noUsage;
    return { prompt, resume: { sessionId: session.sessionId, usage } };
  }

  async #hold({ prompt, resume }: AgentMessage): Promise<SessionEnd> {
    const { count } = this.#options;
    const plan = {
      ...this.#plan,
      number: count.next(),
      prompt,
      left: count.left,
      ...(resume ? { resume } : {}),
    };
    const end = withStepsHint(this.#lane, await runSession(this.#lane, plan));
    count.spend(end.usage);
    this.#used = resume?.usage ? addUsage(resume.usage, end.usage) : end.usage;
    return end;
  }
}

const endOfAnswered = ({ sessionId, usage, denials = [], answer, error }: KnownAnswer): SessionEnd => ({
  usage,
  denials,
  ...(sessionId === undefined ? {} : { sessionId }),
  ...(error ? { kind: 'failed', error, isLost: false } : { kind: 'ok', text: '', ...answer }),
});

/** Points to the setting of the step if its stall timeout applied. */
const withStepsHint = ({ model }: ConversationLane, end: SessionEnd): SessionEnd =>
  end.kind === 'failed' && end.error.code === 'AGENT_STALLED' && model.timeout.stallMs !== undefined
    ? { ...end, error: { ...end.error, hint: 'raise `timeout.stall` of the step, or add `retry` to it' } }
    : end;

/** Prompt for resuming an interrupted session. */
export const goOnPrompt =
  'You were interrupted. Review what you have already done in this folder, then continue where you stopped.';

const maxQuote = 4000;

/** Returns the prompt of the step, unchanged, followed by the error of the last attempt. */
export const attemptPrompt = (prompt: string, lastError: ErrorData | undefined): string =>
  lastError === undefined
    ? prompt
    : `${prompt}\n\n## The last attempt failed\n\nThe last attempt at this task failed with this error (${lastError.code}):\n\n${quoted(lastError.message)}\n\nYou start again from the same state as that attempt. Avoid this error.`;

export interface FailedCheck {
  /** Command as written in the definition. */
  readonly text: string;
  readonly exitCode?: number | undefined;
  /** End of the command's output. */
  readonly tail: string;
}

/** Returns the prompt for work that fails a check. */
export function checkPrompt({ text, exitCode, tail }: FailedCheck): string {
  const how = exitCode === undefined ? 'did not finish' : `exited with code ${exitCode}`;
  const output =
    tail.trim() === '' ? 'It printed nothing.' : `The end of its output:\n\n${quoted(tail.trim())}`;
  return `Your work does not pass its check. This command ${how}:\n\n${quoted(text)}\n\n${output}\n\nFind the cause and fix it without weakening the check. Then finish as you were asked to.`;
}

/** Returns the prompt for an invalid answer. */
export const answerPrompt = (error: ErrorData): string =>
  `Your answer cannot be used:\n\n${quoted(error.message)}\n\nKeep the work that you have done, and answer again in the requested format.`;

/** Repeats the full prompt before the news, for agents that cannot resume a session. */
export const repeatedPrompt = (prompt: string, news: string): string =>
  `${prompt}\n\n## What has happened since\n\nYou have already worked on this task in this folder.\n\n${news}`;

/** Keeps the end of long text, which matters most. */
const quoted = (text: string): string => fenced(text.length > maxQuote ? `…${text.slice(-maxQuote)}` : text);
