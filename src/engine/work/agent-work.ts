import type { AgentDefinition } from '../../agents/agent.ts';
import { permissionDenied } from '../../agents/failures.ts';
import type { Denial, ResumeRequest, Usage } from '../../agents/port.ts';
import { addUsage } from '../../agents/usage.ts';
import { type ErrorData, RepriseError, toErrorData } from '../../core/errors.ts';
import { type Json, toJson } from '../../core/json.ts';
import { nearest } from '../../core/suggest.ts';
import type { AgentBody } from '../../workflow/model.ts';
import { commandError, type FailedCommand, runInTurn } from './commands.ts';
import { type Done, failedWith } from './ends.ts';
import type { Place } from './place.ts';
import { policyOf } from './policy.ts';
import type { WorkLane } from './port.ts';
import { answerPrompt, attemptPrompt, checkPrompt, goOnPrompt, toldAgain } from './prompts.ts';
import { canResume, runSession, type SessionEnd, type SessionPlan } from './session.ts';
import { leftAfter } from './spending.ts';

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
interface Message {
  readonly prompt: string;
  readonly resume?: ResumeRequest | undefined;
}

/**
 * The work of an agent: sessions until its answer can be used and its checks pass, or nothing of `rework` is left.
 * What it does is in its workspace; what it says is the output.
 */
export async function agentWork(lane: WorkLane, body: AgentBody, place: Place): Promise<Done> {
  const talks = new Talks(lane, body, place);
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

/** Where the limit stands that the silence passed. */
const withStepsHint = ({ model }: WorkLane, end: SessionEnd): SessionEnd =>
  end.kind === 'failed' && end.error.code === 'AGENT_STALLED' && model.timeout.stallMs !== undefined
    ? { ...end, error: { ...end.error, hint: 'raise `timeout.stall` of the step, or add `retry` to it' } }
    : end;

/** The sessions of one attempt. */
class Talks {
  readonly #lane: WorkLane;
  readonly #agent: AgentDefinition;
  readonly #whole: string;
  readonly #plan: Omit<SessionPlan, 'number' | 'prompt' | 'resume' | 'left'>;
  #number: number;
  #left: WorkLane['left'];
  /** What the session that is gone on with has used, in all its parts. */
  #used: Usage | undefined;

  constructor(lane: WorkLane, body: AgentBody, place: Place) {
    const { effects, scope, known, model } = lane;
    const named = agentNamed(effects, body.agent);
    const stallTimeoutMs = model.timeout.stallMs ?? named.stallTimeoutMs;
    const agent = stallTimeoutMs === undefined ? named : { ...named, stallTimeoutMs };
    this.#lane = lane;
    this.#agent = agent;
    this.#whole = attemptPrompt(body.prompt(scope), known.lastError);
    this.#number = known.sessions;
    this.#left = lane.left;
    this.#plan = {
      agent,
      folder: place.folder,
      env: { ...place.env, ...body.env(scope) },
      permissions: policyOf({
        agent,
        step: body.permissions,
        checks: body.work.checks.map(({ text }) => text),
        readonly: place.workspace?.readonly ?? false,
      }),
      ...(body.output ? { outputSchema: body.output.schema } : {}),
      ...(body.maxTurns === undefined ? {} : { maxTurns: body.maxTurns }),
    };
  }

  /** A session that a crash or a limit cut off is gone on with. */
  first(): Message {
    const { session } = this.#lane.known;
    const isOurs = session?.agent === this.#agent.name && canResume(this.#agent);
    return isOurs
      ? { prompt: goOnPrompt, resume: { sessionId: session.sessionId, usage: session.usage } }
      : { prompt: this.#whole };
  }

  /** The same session is told the news, as far as the agent remembers it. */
  after({ sessionId }: SessionEnd, news: string): Message {
    return sessionId !== undefined && canResume(this.#agent)
      ? { prompt: news, resume: { sessionId, usage: this.#used } }
      : { prompt: toldAgain(this.#whole, news) };
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
    return this.#hold({ prompt: isNews ? toldAgain(this.#whole, message.prompt) : this.#whole });
  }

  async #hold({ prompt, resume }: Message): Promise<SessionEnd> {
    const number = this.#number++;
    const plan = { ...this.#plan, number, prompt, left: this.#left, ...(resume ? { resume } : {}) };
    const end = withStepsHint(this.#lane, await runSession(this.#lane, plan));
    this.#left = leftAfter(this.#left, end.usage);
    this.#used = resume?.usage ? addUsage(resume.usage, end.usage) : end.usage;
    return end;
  }
}
