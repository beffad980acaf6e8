import type { AgentDefinition } from '../../../agents/agent.ts';
import type { PermissionPolicy } from '../../../agents/permissions/permissions.ts';
import { addUsage, type ResumeRequest, type Usage } from '../../../agents/session.ts';
import { RepriseError } from '../../../core/errors.ts';
import { nearest } from '../../../core/suggest.ts';
import type { AgentOutput, Command, StepPermissions } from '../../../workflow/model.ts';
import type { KnownSession, WorkLane } from '../contract.ts';
import { leftAfter } from '../outcome.ts';
import type { Place } from '../workspace.ts';
import { goOnPrompt, toldAgain } from './prompts.ts';
import { canResume, runSession, type SessionEnd, type SessionPlan } from './session.ts';

interface PolicyOf {
  readonly agent: AgentDefinition;
  readonly step?: StepPermissions | undefined;
  /** Commands that are run on the work anyway, as they were written. */
  readonly checks: readonly string[];
  /** Nothing in the workspace may change. */
  readonly readonly: boolean;
}

/** What an agent may do in a step: nobody is there to be asked, so what is not allowed is denied. */
export const policyOf = ({ agent, step, checks, readonly }: PolicyOf): PermissionPolicy => ({
  agent: agent.name,
  preset: readonly ? 'read-only' : (step?.preset ?? agent.permissions),
  allow: union(agent.allow, step?.allow),
  deny: union(agent.deny, step?.deny),
  checks,
  otherwise: 'deny',
});

const union = (first: readonly string[], second: readonly string[] = []): readonly string[] => [
  ...new Set([...first, ...second]),
];

/** Throws AGENT_UNKNOWN. */
export function agentNamed(
  { agents }: { readonly agents: ReadonlyMap<string, AgentDefinition> },
  name: string,
) {
  const agent = agents.get(name);
  if (agent) return agent;
  const meant = nearest(name, agents.keys());
  throw new RepriseError('AGENT_UNKNOWN', `there is no agent named \`${name}\``, {
    hint: meant
      ? `did you mean \`${meant}\`?`
      : `define it in .reprise/agents/${name}.md, or under \`agents\` in reprise.yaml`,
  });
}

/** What an agent is told next, and in which session. */
export interface Message {
  readonly prompt: string;
  readonly resume?: ResumeRequest | undefined;
}

/** What all sessions of an attempt share: their numbers, and what they may still use up. */
export class SessionCount {
  #number: number;
  #left: WorkLane['left'];

  constructor({ known, left }: Pick<WorkLane, 'known' | 'left'>) {
    this.#number = known.sessions;
    this.#left = left;
  }

  get left(): WorkLane['left'] {
    return this.#left;
  }

  next(): number {
    return this.#number++;
  }

  spend(usage: Usage): void {
    this.#left = leftAfter(this.#left, usage);
  }
}

interface Talk {
  readonly place: Pick<Place, 'folder' | 'env' | 'workspace'>;
  readonly count: SessionCount;
  /** Its name. */
  readonly agent: string;
  /** All that the agent has to know. */
  readonly prompt: string;
  readonly env?: Readonly<Record<string, string>> | undefined;
  readonly permissions?: StepPermissions | undefined;
  /** Commands that will be run on the work, and that the agent may therefore run too. */
  readonly checks?: readonly Pick<Command, 'text'>[] | undefined;
  readonly output?: AgentOutput | undefined;
  readonly maxTurns?: number | undefined;
}

/** One conversation with one agent, in as many sessions as it takes. */
export class Talks {
  readonly #lane: WorkLane;
  readonly #agent: AgentDefinition;
  readonly #talk: Talk;
  readonly #plan: Omit<SessionPlan, 'number' | 'prompt' | 'resume' | 'left'>;
  /** What the session that is gone on with has used, in all its parts. */
  #used: Usage | undefined;

  /** Throws AGENT_UNKNOWN. */
  constructor(lane: WorkLane, talk: Talk) {
    const { effects, model } = lane;
    const { place, output, maxTurns } = talk;
    const named = agentNamed(effects, talk.agent);
    const stallTimeoutMs = model.timeout.stallMs ?? named.stallTimeoutMs;
    const agent = stallTimeoutMs === undefined ? named : { ...named, stallTimeoutMs };
    this.#lane = lane;
    this.#agent = agent;
    this.#talk = talk;
    this.#plan = {
      agent,
      folder: place.folder,
      env: { ...place.env, ...talk.env },
      permissions: policyOf({
        agent,
        step: talk.permissions,
        checks: (talk.checks ?? []).map(({ text }) => text),
        readonly: place.workspace?.readonly ?? false,
      }),
      ...(output ? { outputSchema: output.schema } : {}),
      ...(maxTurns === undefined ? {} : { maxTurns }),
    };
  }

  /** Everything, to somebody who knows nothing of it. */
  start(): Message {
    return { prompt: this.#talk.prompt };
  }

  /** A session that a crash or a limit cut off is gone on with. */
  first(): Message {
    const { session } = this.#lane.known;
    return this.#goOn(session, goOnPrompt) ?? this.start();
  }

  /** A session that came to its end before is told the news, as far as the agent remembers it. */
  again(session: KnownSession | undefined, news: string): Message {
    return this.#goOn(session, news) ?? { prompt: toldAgain(this.#talk.prompt, news) };
  }

  /** The same session is told the news, as far as the agent remembers it. */
  after({ sessionId }: SessionEnd, news: string): Message {
    return sessionId !== undefined && canResume(this.#agent)
      ? { prompt: news, resume: { sessionId, usage: this.#used } }
      : { prompt: toldAgain(this.#talk.prompt, news) };
  }

  async hold(message: Message): Promise<SessionEnd> {
    const end = await this.#hold(message);
    if (end.kind !== 'failed' || !end.isLost) return end;
    const { effects, unit } = this.#lane;
    if (!message.resume) {
      effects.notice(`${unit.step}: ${this.#agent.name} did not start and is started again`);
      return this.#hold(message);
    }
    effects.notice(`${unit.step}: ${this.#agent.name} could not go on with its session and begins a new one`);
    const isNews = message.prompt !== goOnPrompt;
    const { prompt } = this.#talk;
    return this.#hold({ prompt: isNews ? toldAgain(prompt, message.prompt) : prompt });
  }

  #goOn(session: KnownSession | undefined, prompt: string): Message | undefined {
    if (!session || session.agent !== this.#agent.name || !canResume(this.#agent)) return undefined;
    return { prompt, resume: { sessionId: session.sessionId, usage: this.#used ?? session.usage } };
  }

  async #hold({ prompt, resume }: Message): Promise<SessionEnd> {
    const { count } = this.#talk;
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

/** Where the limit stands that the silence passed. */
const withStepsHint = ({ model }: WorkLane, end: SessionEnd): SessionEnd =>
  end.kind === 'failed' && end.error.code === 'AGENT_STALLED' && model.timeout.stallMs !== undefined
    ? { ...end, error: { ...end.error, hint: 'raise `timeout.stall` of the step, or add `retry` to it' } }
    : end;
