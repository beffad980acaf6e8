import { appendFile, mkdir, readFile, rm, writeFile } from 'node:fs/promises';
import { dirname, resolve } from 'node:path';
import { type ErrorData, type Json, RepriseError, toErrorData } from '../../core/index.ts';
import { fileLimits, readBoundedText } from '../../effects/index.ts';
import { startProcess } from '../../process/index.ts';
import type { Script, ScriptStep } from '../agent.ts';
import { failed, limitError, permissionDenied } from '../driver/failures.ts';
import type { AgentVerdict } from '../driver/protocol.ts';
import { judge } from '../driver/result.ts';
import { HostReporter, TurnQueue } from '../driver/turns.ts';
import { applyPolicy, decisionOf } from '../permissions/permissions.ts';
import { pathInside, realPathOf } from '../permissions/rules.ts';
import {
  type HostAnswer,
  type HostQuestion,
  noUsage,
  type Session,
  type SessionFactory,
  type SessionHost,
  type SessionRequest,
  type SessionResult,
  type TurnEnd,
} from '../session.ts';

type WorkspaceStep = Extract<
  ScriptStep,
  | { write: unknown }
  | { append: unknown }
  | { delete: unknown }
  | { replace: unknown }
  | { run: unknown }
  | { commit: unknown }
>;

/** Author of commits if git has no identity configured. */
const author = {
  GIT_AUTHOR_NAME: 'Scripted agent',
  GIT_AUTHOR_EMAIL: 'scripted@agent.invalid',
  GIT_COMMITTER_NAME: 'Scripted agent',
  GIT_COMMITTER_EMAIL: 'scripted@agent.invalid',
};

/** Carries out the steps of a script that change the workspace, and nothing outside of it. */
class WorkspaceSteps {
  readonly #request: SessionRequest;
  readonly #host: SessionHost;
  readonly #signal: AbortSignal;

  constructor(request: SessionRequest, host: SessionHost, signal: AbortSignal) {
    this.#request = request;
    this.#host = host;
    this.#signal = signal;
  }

  /** Returns the tool that a real agent would have used. */
  describe(step: WorkspaceStep): { readonly name: string; readonly input: Json } {
    if ('write' in step) return { name: 'Write', input: { file_path: step.write.path } };
    if ('append' in step) return { name: 'Edit', input: { file_path: step.append.path } };
    if ('replace' in step) return { name: 'Edit', input: { file_path: step.replace.path } };
    if ('delete' in step) return { name: 'Bash', input: { command: `rm ${step.delete}` } };
    if ('run' in step) return { name: 'Bash', input: { command: step.run } };
    return { name: 'Bash', input: { command: `git commit -m ${JSON.stringify(step.commit)}` } };
  }

  /** Carries out a step and returns its output. Rejects if the step fails. */
  async use(step: WorkspaceStep): Promise<string> {
    if ('run' in step) return this.#run(['sh', '-c', step.run]);
    if ('commit' in step) {
      const git = ['git', '-c', 'gc.auto=0', '-c', 'maintenance.auto=false', '-c', 'commit.gpgsign=false'];
      await this.#run([...git, 'add', '-A']);
      return this.#run([...git, 'commit', '-q', '-m', step.commit]);
    }
    if ('write' in step) await this.#write(step.write.path, step.write.content);
    else if ('append' in step) await appendFile(await this.#folderFor(step.append.path), step.append.content);
    else if ('delete' in step) await rm(this.#inside(step.delete));
    else await this.#replace(step.replace);
    return '';
  }

  /** Waits. Resolves early if the session is cancelled. */
  sleep(ms: number): Promise<void> {
    return new Promise(resolve => {
      if (this.#signal.aborted) return resolve();
      const timer = setTimeout(wake, ms);
      const signal = this.#signal;
      signal.addEventListener('abort', wake);
      function wake() {
        clearTimeout(timer);
        signal.removeEventListener('abort', wake);
        resolve();
      }
    });
  }

  async #write(path: string, content: string): Promise<void> {
    await writeFile(await this.#folderFor(path), content);
  }

  async #replace({ path, from, to }: { path: string; from: string; to: string }): Promise<void> {
    const file = this.#inside(path);
    const before = await readFile(file, 'utf8');
    const at = before.indexOf(from);
    if (at < 0) {
      throw new RepriseError('AGENT_FAILED', `${path} does not contain ${JSON.stringify(from)}`, {
        hint: 'fix the script or the file',
      });
    }
    await writeFile(file, before.slice(0, at) + to + before.slice(at + from.length));
  }

  async #folderFor(path: string): Promise<string> {
    const file = this.#inside(path);
    await mkdir(dirname(file), { recursive: true });
    return file;
  }

  #inside(path: string): string {
    const { cwd } = this.#request;
    const file = realPathOf(path, cwd);
    if (pathInside(realPathOf(cwd, '/'), file)) return file;
    throw new RepriseError('PERMISSION_DENIED', `${path} is not inside the workspace`, {
      hint: 'a script can only change files in its workspace: use a relative path',
    });
  }

  async #run(argv: readonly string[]): Promise<string> {
    const { inheritEnv, marker, graceMs, onProcess } = this.#host;
    const { agent, cwd } = this.#request;
    const env = { ...author, ...inheritEnv, ...agent.env, ...this.#request.env };
    const running = startProcess({ argv, cwd, env, marker, logFile: this.#host.logFile });
    let onAbort = () => {};
    const aborted = new Promise<void>(resolve => {
      onAbort = resolve;
    });
    this.#signal.addEventListener('abort', onAbort);
    try {
      if (running.identity) await onProcess?.call(this.#host, running.identity);
      if (!this.#signal.aborted) await Promise.race([running.ended, aborted]);
    } finally {
      this.#signal.removeEventListener('abort', onAbort);
      const { survived } = await running.stop({ graceMs });
      if (survived.length > 0) this.#host.onSurvived?.(survived);
    }
    const end = await running.ended;
    if (end.kind === 'exited' && end.exitCode === 0) return end.tail;
    const how = end.kind === 'exited' ? `exited with code ${end.exitCode}` : 'did not run to completion';
    throw new RepriseError('AGENT_FAILED', `\`${argv.slice(-1)[0]}\` ${how}\n${end.tail}`.trim(), {
      hint: 'fix the script or the command',
    });
  }
}

/** Opens sessions with an agent that follows a script: real files, real commits, no model. */
export const scriptedSessions: SessionFactory = (request, host) => new ScriptedSession(request, host);

class ScriptedSession implements Session {
  readonly #request: SessionRequest;
  readonly #host: SessionHost;
  readonly #progress: HostReporter;
  // A script is written before the session has a key.
  readonly #turns = new TurnQueue({ nextKey: null });
  readonly #abort = new AbortController();
  readonly #workspace: WorkspaceSteps;
  readonly #onAbort = () => void this.cancel();
  #tools = 0;
  #said = '';
  #work: Promise<void> | undefined;

  constructor(request: SessionRequest, host: SessionHost) {
    this.#request = request;
    this.#host = host;
    this.#progress = new HostReporter(request, host);
    this.#workspace = new WorkspaceSteps(request, host, this.#abort.signal);
  }

  next(answer?: HostAnswer): Promise<TurnEnd> {
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
    this.#progress.report({ type: 'usage', ...noUsage, costUsd: 0 });
    const context = { request: this.#request, progress: this.#progress };
    const result = await judge(verdict, context);
    this.#end(this.#abort.signal.aborted ? { kind: 'cancelled', ...this.#progress.soFar() } : result);
  }

  async #play(): Promise<AgentVerdict> {
    const script = await this.#script();
    const { sessionId, resume, cwd } = this.#request;
    const id = sessionId ?? resume?.sessionId ?? 'scripted';
    this.#progress.report({ type: 'started', sessionId: id, model: 'scripted', cwd });
    for (const step of script) {
      if (this.#abort.signal.aborted) return { kind: 'stopped' };
      const verdict = await this.#performStep(step);
      if (verdict) return verdict;
    }
    return { kind: 'ok', text: this.#said };
  }

  async #script(): Promise<Script> {
    const { script, scriptFile } = this.#request.agent;
    if (script) return script;
    const file = resolve(this.#request.cwd, scriptFile ?? '');
    try {
      // Loading the schema library takes 100 ms.
      const { parseScript } = await import('../agent.ts');
      return parseScript(readBoundedText(file, { maxBytes: fileLimits.definition }));
    } catch (cause) {
      throw new RepriseError(
        'AGENT_FAILED',
        `the script ${file} cannot be used: ${toErrorData(cause).message}`,
        {
          hint: 'fix `script_file`, or the file: a list of steps such as `- say: hello`',
          cause,
        },
      );
    }
  }

  /**
   * Applies the permissions to a step that changes the workspace, as if a real agent had asked. If none are written, only
   * protected files are refused.
   */
  #denial(step: WorkspaceStep): AgentVerdict | undefined {
    const { permissions } = this.#request;
    const { name, input } =
      'delete' in step ? { name: 'Edit', input: { file_path: step.delete } } : this.#workspace.describe(step);
    if (!permissions.isWritten && (name === 'Bash' || permissions.preset === 'full')) return undefined;
    const policy = permissions.isWritten ? permissions : { ...permissions, preset: 'edit' as const };
    const ruling = applyPolicy({ ...this.#request, permissions: policy }, this.#host)(name, input);
    const decision = ruling.kind === 'decided' ? ruling.decision : undefined;
    if (decision?.kind !== 'deny') return undefined;
    this.#progress.report({ type: 'permission', id: `ask-${++this.#tools}`, tool: name, input, decision });
    return failed(permissionDenied({ tool: name, ...decision }));
  }

  /** Performs one step. Returns `undefined` if the script continues. */
  async #performStep(step: ScriptStep): Promise<AgentVerdict | undefined> {
    if ('say' in step) {
      this.#said = step.say;
      this.#progress.report({ type: 'text', text: step.say });
    } else if ('think' in step) this.#progress.report({ type: 'thought', text: step.think });
    else if ('fail' in step) return failed({ ...scriptFailure, message: step.fail });
    else if ('limit' in step) return this.#limit(step.limit);
    else if ('ask' in step) return this.#ask(step.ask.tool, step.ask.input ?? {});
    else if ('result' in step) {
      const { text = this.#said, output } = step.result;
      return { kind: 'ok', text, ...(output === undefined ? {} : { structured: output }) };
    } else if ('sleep' in step) await this.#workspace.sleep(step.sleep);
    else {
      const denial = this.#denial(step);
      if (denial) return denial;
      await this.#use(step);
    }
    return undefined;
  }

  async #use(step: Parameters<WorkspaceSteps['use']>[0]): Promise<void> {
    const id = `tool-${++this.#tools}`;
    this.#progress.report({ type: 'tool-start', id, ...this.#workspace.describe(step) });
    const end = (ok: boolean, output: string) =>
      this.#progress.report({ type: 'tool-end', id, ok, ...(output === '' ? {} : { output }) });
    try {
      end(true, await this.#workspace.use(step));
    } catch (error) {
      end(false, toErrorData(error).message);
      throw error;
    }
  }

  async #ask(
    tool: string,
    input: Parameters<ReturnType<typeof applyPolicy>>[1],
  ): Promise<AgentVerdict | undefined> {
    const id = `ask-${++this.#tools}`;
    const asked = { type: 'permission', id, tool, input } as const;
    const ruling = applyPolicy(this.#request, this.#host)(tool, input);
    let decision = ruling.kind === 'decided' ? ruling.decision : undefined;
    if (ruling.kind === 'ask') {
      this.#progress.report(asked);
      const question = { kind: 'permission', id, tool, input, lineToAdd: ruling.lineToAdd } as const;
      decision = decisionOf(question, await this.#question(question));
    }
    if (!decision || this.#abort.signal.aborted) return undefined;
    this.#progress.report({ ...asked, decision });
    return decision.kind === 'allow' ? undefined : failed(permissionDenied({ tool, ...decision }));
  }

  async #limit(limit: Extract<ScriptStep, { limit: unknown }>['limit']): Promise<AgentVerdict | undefined> {
    const reason = limit.reason ?? 'the script reached a limit';
    const when = limit.resets_at === undefined ? {} : { resetsAt: limit.resets_at };
    const error: ErrorData = limitError(reason, limit.resets_at);
    this.#progress.report({ type: 'limit', reason, ...when });
    const verdict = { kind: 'limit', error, ...when } as const;
    if (this.#request.onLimit !== 'ask') return verdict;
    const answer = await this.#question(verdict);
    return answer.kind === 'continue' ? undefined : verdict;
  }

  /** Asks the host. Resolves with `stop` if the session is cancelled. */
  #question(question: HostQuestion): Promise<HostAnswer> {
    return new Promise(resolve => {
      this.#turns.ask(question, resolve);
      this.#abort.signal.addEventListener('abort', () => resolve({ kind: 'stop' }));
    });
  }

  #end(result: SessionResult): void {
    this.#host.signal?.removeEventListener('abort', this.#onAbort);
    this.#progress.report({ type: 'done', outcome: result.kind });
    this.#turns.end(result);
  }
}

const scriptFailure = { code: 'AGENT_FAILED', hint: 'the script of the agent has a `fail` step' } as const;
