import { rm, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { toErrorData } from '../../core/index.ts';
import { type RunningProcess, startProcess, temporaryFolder } from '../../process/index.ts';
import { applyPolicy } from '../permissions/permissions.ts';
import type {
  AgentEvent,
  HostAnswer,
  HostQuestion,
  Session,
  SessionFactory,
  SessionHost,
  SessionRequest,
  SessionResult,
  TurnEnd,
} from '../session.ts';
import { failed, protocolError } from './failures.ts';
import { locateProgram } from './program.ts';
import {
  type Adapter,
  type AgentVerdict,
  type Launch,
  type Protocol,
  rawEvent,
  type Signal,
  type Step,
} from './protocol.ts';
import { judge, silentEnd } from './result.ts';
import { endAgent, HostReporter, longestLine, OutputListener, TurnQueue, within } from './turns.ts';

/** Time for an agent to exit by itself after it finished or closed its output. */
const exitTimeoutMs = 1000;

/** Length of the start of a line that tells what the line contains. */
const headLength = 500;

/** Opens sessions that each start a program of their own. */
export const processSessions =
  <State>(adapter: Adapter<State>): SessionFactory =>
  (request, host) =>
    new ProcessSession(adapter, request, host);

class ProcessSession<State> implements Session {
  readonly #adapter: Adapter<State>;
  readonly #request: SessionRequest;
  readonly #host: SessionHost;
  readonly #protocol: Protocol<State>;
  readonly #progress: HostReporter;
  readonly #turns = new TurnQueue();
  readonly #listener: OutputListener;
  readonly #reported: Promise<void>;
  readonly #onAbort = () => void this.cancel();
  #report = () => {};
  #state: State;
  #folder: string | undefined;
  #running: RunningProcess | undefined;
  readonly #runningTools = new Set<string>();
  /** Whether the agent waits for its background tasks. */
  #isHeld = false;
  #hasEnded = false;
  /** Whether the verdict is known. Later output of the agent changes nothing. */
  #isSettled = false;
  #isCancelled = false;
  /** Whether the session is stopped so that it can be resumed. */
  #isSuspending = false;
  #beginning: Promise<void> | undefined;
  #cancelling: Promise<void> | undefined;
  #closing: Promise<void> | undefined;

  constructor(adapter: Adapter<State>, request: SessionRequest, host: SessionHost) {
    this.#adapter = adapter;
    this.#request = request;
    this.#host = host;
    this.#progress = new HostReporter(request, host);
    this.#protocol = adapter.protocol({ request, rule: applyPolicy(request, host), now: () => this.#now() });
    this.#state = this.#protocol.open().state;
    this.#listener = new OutputListener({
      onLine: line => this.#apply(this.#protocol.take(this.#state, line)),
      onCut: start => this.#onCut(start),
      onStall: () => void this.#onStall(),
      stallMs: request.agent.stallTimeoutMs,
    });
    this.#reported = new Promise(resolve => {
      this.#report = resolve;
    });
  }

  async next(answer?: HostAnswer): Promise<TurnEnd> {
    this.#beginning ??= this.#begin();
    await this.#beginning;
    if (!this.#isSettled) this.#listener.startStallTimer();
    const turn = await this.#turns.next(answer);
    this.#listener.stopStallTimer();
    return turn;
  }

  suspend(hurry?: AbortSignal): void {
    if (this.#isSuspending || this.#turns.isOver) return;
    this.#isSuspending = true;
    const { suspend } = this.#protocol;
    if (!suspend || hurry?.aborted) return void this.cancel();
    this.#state = suspend(this.#state);
    hurry?.addEventListener('abort', this.#onAbort, { once: true });
  }

  cancel(): Promise<void> {
    this.#cancelling ??= this.#cancel();
    return this.#cancelling;
  }

  close(): Promise<void> {
    this.#closing ??= this.#close();
    return this.#closing;
  }

  async #begin(): Promise<void> {
    const { signal } = this.#host;
    if (signal?.aborted) {
      this.#isCancelled = true;
      return this.#end({ kind: 'cancelled', ...this.#progress.soFar() });
    }
    signal?.addEventListener('abort', this.#onAbort);
    try {
      this.#folder = temporaryFolder('agent');
      await this.#start(this.#folder);
    } catch (error) {
      this.#settle(failed(toErrorData(error)));
    }
    const running = this.#running;
    if (!running) return;
    if (running.identity) await this.#announce(running);
    void running.ended.then(end => {
      this.#hasEnded = true;
      if (this.#isSettled) return;
      const exitCode = end.kind === 'exited' ? end.exitCode : undefined;
      this.#settle(this.#protocol.ended(this.#state, exitCode) ?? silentEnd(end, this.#endContext()));
    });
    if (!this.#isCancelled) this.#apply(this.#protocol.open());
  }

  async #start(folder: string): Promise<void> {
    const { agent, cwd } = this.#request;
    const launch = this.#adapter.launch(this.#request, folder);
    const env = this.#environment(launch);
    const program = locateProgram(agent, launch.argv, { path: env['PATH'], cwd });
    for (const [name, text] of Object.entries(launch.files ?? {}))
      await writeFile(join(folder, name), text, { mode: 0o600 });
    if (this.#isCancelled) return;
    this.#running = startProcess({
      argv: [program, ...launch.argv.slice(1)],
      cwd,
      env,
      marker: this.#host.marker,
      stdin: launch.stdin,
      logFile: this.#host.logFile,
      maxLineLength: longestLine,
      onLine: this.#listener.take,
      onStreamEnd: stream => void (stream === 'stdout' && this.#onOutputClosed()),
    });
  }

  #environment({ env }: Launch): Record<string, string | undefined> {
    const { agent } = this.#request;
    return { ...this.#host.inheritEnv, ...env, ...agent.env, ...this.#request.env };
  }

  async #announce(running: RunningProcess): Promise<void> {
    try {
      if (running.identity) await this.#host.onProcess?.(running.identity);
    } catch (error) {
      this.#isSettled = true;
      await running.stop({ graceMs: 0 });
      throw error;
    }
  }

  #apply({ state, signals }: Step<State>): void {
    this.#state = state;
    for (const signal of signals) this.#perform(signal);
  }

  #perform(signal: Signal): void {
    switch (signal.kind) {
      case 'event':
        this.#trackTool(signal.event);
        this.#progress.report(signal.event);
        break;
      case 'send':
        this.#running?.write(`${JSON.stringify(signal.message)}\n`);
        break;
      case 'question':
        this.#ask(signal.question);
        break;
      case 'withdraw':
        this.#turns.withdraw(signal.id);
        break;
      case 'verdict':
        this.#settle(signal.verdict);
        break;
      case 'hold':
        this.#isHeld = true;
        this.#listener.startSilenceTimer(signal.silenceMs, () => this.#settle(signal.verdict));
        break;
    }
  }

  #trackTool(event: AgentEvent): void {
    if (event.type === 'tool-start') this.#runningTools.add(event.id);
    if (event.type === 'tool-end') this.#runningTools.delete(event.id);
    if (event.type === 'text') this.#isHeld = false;
  }

  #ask(question: HostQuestion): void {
    this.#turns.ask(question, answer => this.#apply(this.#protocol.answer(this.#state, question, answer)));
  }

  #settle(verdict: AgentVerdict): void {
    this.#report();
    if (this.#isSettled || this.#isCancelled) return;
    this.#isSettled = true;
    this.#listener.stopSilenceTimer();
    if (verdict.kind === 'stopped' && this.#isSuspending) this.#endStopped();
    else if (verdict.kind === 'limit') this.#onLimit(verdict);
    else void this.#finish(verdict);
  }

  /** The agent has stopped by itself. Its process exits when its input ends. */
  #endStopped(): void {
    this.#running?.endInput();
    this.#end({ kind: 'cancelled', ...this.#progress.soFar() });
  }

  #onLimit(verdict: Extract<AgentVerdict, { kind: 'limit' }>): void {
    const { resetsAt, error } = verdict;
    const when = resetsAt === undefined ? {} : { resetsAt };
    this.#progress.report({ type: 'limit', reason: error.message, ...when });
    if (this.#request.onLimit !== 'ask' || !this.#adapter.canContinue) return void this.#finish(verdict);
    const question = { kind: 'limit', error, ...when } as const;
    this.#turns.ask(question, answer => {
      if (answer.kind !== 'continue' || this.#hasEnded) return void this.#finish(verdict);
      this.#isSettled = false;
      this.#apply(this.#protocol.answer(this.#state, question, answer));
    });
  }

  async #finish(verdict: AgentVerdict): Promise<void> {
    this.#running?.endInput();
    const result = await judge(verdict, { request: this.#request, progress: this.#progress });
    if (!this.#isCancelled) this.#end(result);
  }

  #end(result: SessionResult): void {
    this.#listener.stopStallTimer();
    this.#listener.stopSilenceTimer();
    this.#host.signal?.removeEventListener('abort', this.#onAbort);
    this.#progress.report({ type: 'done', outcome: result.kind });
    this.#turns.end(result);
  }

  /** Reports a line that was too long to read. Fails if it was part of the answer, which is lost. */
  #onCut(start: string): void {
    this.#progress.report(rawEvent(start));
    if (!this.#adapter.isAnswer(start.slice(0, headLength))) return;
    const limit = `${longestLine / 1024 / 1024} MiB`;
    const error = protocolError(
      `the agent printed a line of more than ${limit}, so its answer is incomplete`,
      'let it write large results to a file, and answer with the path',
    );
    void this.#fail(failed(error));
  }

  async #onOutputClosed(): Promise<void> {
    if (!this.#adapter.speaksOnStdout || !this.#running) return;
    await within(this.#running.ended, exitTimeoutMs);
    if (this.#hasEnded || this.#isSettled) return;
    await this.#fail(silentEnd('closed its output', this.#endContext()));
  }

  async #onStall(): Promise<void> {
    // A tool may be silent for as long as it takes. `timeout` limits it.
    if (this.#runningTools.size > 0 || this.#isHeld) return this.#listener.startStallTimer();
    const seconds = (this.#request.agent.stallTimeoutMs ?? 0) / 1000;
    await this.#fail(
      failed({
        code: 'AGENT_STALLED',
        message: `the agent printed nothing for ${seconds} s`,
        hint: `raise \`stall_timeout\` of the agent \`${this.#request.agent.name}\`, or add \`retry\` to the step`,
      }),
    );
  }

  /** Stops a running agent, then reports the failure. */
  async #fail(verdict: AgentVerdict): Promise<void> {
    if (this.#isSettled || this.#isCancelled) return;
    this.#isSettled = true;
    await this.#stop();
    await this.#finish(verdict);
  }

  async #cancel(): Promise<void> {
    if (this.#turns.isOver) return;
    this.#isCancelled = true;
    await this.#stop();
    this.#end({ kind: 'cancelled', ...this.#progress.soFar() });
  }

  async #stop(): Promise<void> {
    await this.#beginning?.catch(() => {});
    if (!this.#running) return;
    // A tool that is interrupted is reported to the model as refused by the user; one that is killed is not.
    const stopsBy = this.#isSuspending ? this.#howToStop() : undefined;
    const interrupt = () => {
      const step = this.#protocol.interrupt(this.#state);
      this.#apply(step);
      return step.signals.length > 0;
    };
    const { graceMs } = this.#host;
    const { survived } = await endAgent({
      running: this.#running,
      interrupt,
      stopsBy,
      reported: this.#reported,
      graceMs,
    });
    if (survived.length > 0) this.#host.onSurvived?.(survived);
  }

  #howToStop(): Adapter<State>['stopsBy'] {
    const { stopsBy } = this.#adapter;
    return stopsBy === 'SIGTERM' && this.#runningTools.size === 0 ? undefined : stopsBy;
  }

  async #close(): Promise<void> {
    await this.#beginning?.catch(() => {});
    if (!this.#turns.isOver) await this.cancel();
    const running = this.#running;
    if (running) {
      running.endInput();
      const { graceMs } = this.#host;
      await within(running.ended, Math.min(graceMs, exitTimeoutMs));
      const { survived } = await running.stop({ graceMs });
      if (survived.length > 0) this.#host.onSurvived?.(survived);
    }
    if (this.#folder) await rm(this.#folder, { recursive: true, force: true }).catch(() => {});
  }

  #endContext() {
    const context = { request: this.#request, now: this.#now(), logFile: this.#host.logFile };
    return { ...context, ...this.#listener.lastOutput() };
  }

  #now(): number {
    return this.#host.now?.() ?? Date.now();
  }
}
