import { readFile } from 'node:fs/promises';
import { resolve } from 'node:path';
import { type ErrorData, RepriseError, toErrorData } from '../../core/errors.ts';
import { applyPolicy } from '../apply-policy.ts';
import { failed, limitError, permissionDenied } from '../driver/failures.ts';
import type { Verdict } from '../driver/protocol.ts';
import { judge } from '../driver/result.ts';
import { Progress } from '../progress.ts';
import { decisionOf } from '../ruling.ts';
import { ScriptHands } from '../script-hands.ts';
import type {
  HostAnswer,
  HostQuestion,
  Session,
  SessionFactory,
  SessionHost,
  SessionRequest,
  SessionResult,
  Turn,
} from '../session.ts';
import { Turns } from '../turns.ts';
import { noUsage } from '../usage.ts';
import type { Script, ScriptStep } from './script.ts';

/** Sessions with an agent that does what a script says: real files, real commits, and no model. */
export const scriptedSessions: SessionFactory = (request, host) => new ScriptedSession(request, host);

class ScriptedSession implements Session {
  readonly #request: SessionRequest;
  readonly #host: SessionHost;
  readonly #progress: Progress;
  readonly #turns = new Turns();
  readonly #abort = new AbortController();
  readonly #hands: ScriptHands;
  readonly #onAbort = () => void this.cancel();
  #tools = 0;
  #said = '';
  #work: Promise<void> | undefined;

  constructor(request: SessionRequest, host: SessionHost) {
    this.#request = request;
    this.#host = host;
    this.#progress = new Progress(request, host);
    this.#hands = new ScriptHands(request, host, this.#abort.signal);
  }

  next(answer?: HostAnswer): Promise<Turn> {
    this.#work ??= this.#perform();
    return this.#turns.next(answer);
  }

  async cancel(): Promise<void> {
    if (this.#turns.isOver) return;
    this.#abort.abort();
    await this.#work;
    this.#end({ kind: 'cancelled', ...this.#progress.soFar() });
  }

  async close(): Promise<void> {
    await this.cancel();
    await this.#work;
  }

  async #perform(): Promise<void> {
    const { signal } = this.#host;
    if (signal?.aborted) this.#abort.abort();
    signal?.addEventListener('abort', this.#onAbort);
    const verdict = await this.#play().catch(error => failed(toErrorData(error)));
    this.#progress.tell({ type: 'usage', ...noUsage, costUsd: 0 });
    const context = { request: this.#request, progress: this.#progress };
    const result = await judge(verdict, context);
    this.#end(this.#abort.signal.aborted ? { kind: 'cancelled', ...this.#progress.soFar() } : result);
  }

  async #play(): Promise<Verdict> {
    const script = await this.#script();
    const { sessionId, resume, cwd } = this.#request;
    const id = sessionId ?? resume?.sessionId ?? 'scripted';
    this.#progress.tell({ type: 'started', sessionId: id, model: 'scripted', cwd });
    for (const step of script) {
      if (this.#abort.signal.aborted) return { kind: 'stopped' };
      const verdict = await this.#play1(step);
      if (verdict) return verdict;
    }
    return { kind: 'ok', text: this.#said };
  }

  async #script(): Promise<Script> {
    const { script, scriptFile } = this.#request.agent;
    if (script) return script;
    const file = resolve(this.#request.cwd, scriptFile ?? '');
    try {
      // What checks a script takes a tenth of a second to load.
      const { parseScript } = await import('./script.ts');
      return parseScript(await readFile(file, 'utf8'));
    } catch (cause) {
      throw new RepriseError(
        'AGENT_FAILED',
        `the script ${file} cannot be used: ${toErrorData(cause).message}`,
        {
          hint: 'correct `script_file`, or the file: a list of steps such as `- say: hello`',
          cause,
        },
      );
    }
  }

  /** `undefined`: the script goes on. */
  async #play1(step: ScriptStep): Promise<Verdict | undefined> {
    if ('say' in step) {
      this.#said = step.say;
      this.#progress.tell({ type: 'text', text: step.say });
    } else if ('think' in step) this.#progress.tell({ type: 'thought', text: step.think });
    else if ('fail' in step) return failed({ ...scriptFailure, message: step.fail });
    else if ('limit' in step) return this.#limit(step.limit);
    else if ('ask' in step) return this.#ask(step.ask.tool, step.ask.input ?? {});
    else if ('result' in step) {
      const { text = this.#said, output } = step.result;
      return { kind: 'ok', text, ...(output === undefined ? {} : { structured: output }) };
    } else if ('sleep' in step) await this.#hands.sleep(step.sleep);
    else await this.#use(step);
    return undefined;
  }

  async #use(step: Parameters<ScriptHands['use']>[0]): Promise<void> {
    const id = `tool-${++this.#tools}`;
    this.#progress.tell({ type: 'tool-start', id, ...this.#hands.describe(step) });
    const end = (ok: boolean, output: string) =>
      this.#progress.tell({ type: 'tool-end', id, ok, ...(output === '' ? {} : { output }) });
    try {
      end(true, await this.#hands.use(step));
    } catch (error) {
      end(false, toErrorData(error).message);
      throw error;
    }
  }

  async #ask(
    tool: string,
    input: Parameters<ReturnType<typeof applyPolicy>>[1],
  ): Promise<Verdict | undefined> {
    const id = `ask-${++this.#tools}`;
    const wish = { type: 'permission', id, tool, input } as const;
    const ruling = applyPolicy(this.#request)(tool, input);
    let decision = ruling.kind === 'decided' ? ruling.decision : undefined;
    if (ruling.kind === 'ask') {
      this.#progress.tell(wish);
      const question = { kind: 'permission', id, tool, input, lineToAdd: ruling.lineToAdd } as const;
      decision = decisionOf(question, await this.#question(question));
    }
    if (!decision || this.#abort.signal.aborted) return undefined;
    this.#progress.tell({ ...wish, decision });
    return decision.kind === 'allow' ? undefined : failed(permissionDenied({ tool, ...decision }));
  }

  async #limit(limit: Extract<ScriptStep, { limit: unknown }>['limit']): Promise<Verdict | undefined> {
    const reason = limit.reason ?? 'the script says that a limit is reached';
    const when = limit.resets_at === undefined ? {} : { resetsAt: limit.resets_at };
    const error: ErrorData = limitError(reason, limit.resets_at);
    this.#progress.tell({ type: 'limit', reason, ...when });
    const verdict = { kind: 'limit', error, ...when } as const;
    if (this.#request.onLimit !== 'ask') return verdict;
    const answer = await this.#question(verdict);
    return answer.kind === 'continue' ? undefined : verdict;
  }

  /** Cancelling ends the waiting. */
  #question(question: HostQuestion): Promise<HostAnswer> {
    return new Promise(resolve => {
      this.#turns.ask(question, resolve);
      this.#abort.signal.addEventListener('abort', () => resolve({ kind: 'stop' }));
    });
  }

  #end(result: SessionResult): void {
    this.#host.signal?.removeEventListener('abort', this.#onAbort);
    this.#progress.tell({ type: 'done', outcome: result.kind });
    this.#turns.end(result);
  }
}

const scriptFailure = { code: 'AGENT_FAILED', hint: 'the script of the agent says so' } as const;
