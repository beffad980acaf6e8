import {
  type AgentEvent,
  addUsage,
  type Denial,
  type HostAnswer,
  type HostQuestion,
  judgedTurn,
  noUsage,
  type Session,
  type SessionCut,
  type SessionHost,
  type SessionRequest,
  type SessionResult,
  suspendSession,
  type TurnEnd,
  type Usage,
  withEnding,
} from '../../../agents/index.ts';
import { type Log, openLogFile } from '../../../process/index.ts';
import type { SpendingLimit } from '../../../workflow/index.ts';
import { type Environment, logFile, type Observer } from '../../environment.ts';
import { incarnationOf, inheritedInWorkspace } from '../commands.ts';
import type { WorkLane } from '../contract.ts';
import { overspent } from '../outcome.ts';

/** Maximum number of characters of a tool's input or output that any log or view shows. */
export const longestOutput = 2000;

/** Formats an event of an agent as readable lines. */
export function linesOf(event: AgentEvent): string | undefined {
  switch (event.type) {
    case 'started':
      return `session ${event.sessionId}${event.model ? ` (${event.model})` : ''}`;
    case 'text':
      return event.text;
    case 'thought':
      return indented('~', event.text);
    case 'tool-start':
      return indented('>', event.title ?? `${event.name} ${JSON.stringify(event.input)}`);
    case 'tool-end':
      return event.output === undefined && event.ok
        ? undefined
        : indented(event.ok ? '<' : '!', event.output ?? 'failed');
    case 'permission':
      return event.decision?.kind === 'deny' ? indented('!', `denied: ${event.decision.message}`) : undefined;
    case 'retry':
      return `! retrying (attempt ${event.attempt}): ${event.reason}`;
    case 'limit':
      return `! ${event.reason}`;
    case 'note':
      return `! ${event.message}`;
    case 'raw':
      return event.line;
    case 'usage':
    case 'done':
      return undefined;
  }
}

function indented(sign: string, text: string): string {
  const shown = text.length > longestOutput ? `${text.slice(0, longestOutput)}…` : text;
  return shown
    .trimEnd()
    .split('\n')
    .map(line => `${sign} ${line}`)
    .join('\n');
}

/** Writes events to a log. Events of the same event-loop turn are written together. */
export class SessionLog {
  readonly #log: Log;
  #waiting = '';
  #isClosed = false;
  readonly #endOfTurn: () => Promise<void>;

  constructor(log: Log, endOfTurn: () => Promise<void>) {
    this.#log = log;
    this.#endOfTurn = endOfTurn;
  }

  add(event: AgentEvent): void {
    const lines = linesOf(event);
    if (lines === undefined || this.#isClosed) return;
    if (this.#waiting === '') void this.#endOfTurn().then(() => this.#flush());
    this.#waiting += `${lines}\n`;
  }

  close(): void {
    this.#isClosed = true;
    this.#flush();
    this.#log.close();
  }

  #flush(): void {
    const text = this.#waiting;
    this.#waiting = '';
    if (text !== '') this.#log.append(text);
  }
}

/** The arguments for a new session, as data. */
export interface SessionStart extends Pick<WorkLane, 'runId' | 'lease' | 'unit'> {
  readonly number: number;
  readonly request: SessionRequest;
  /** Last part of the prompt, which shows how to end with `<next>`. */
  readonly ending?: string | undefined;
  /** Remaining budget. The session is stopped when it uses more. */
  readonly left: SpendingLimit;
}

export type SessionTurn =
  /** The agent reported a session id that differs from the expected one. The session continues meanwhile. */
  | { readonly kind: 'named'; readonly sessionId: string }
  | { readonly kind: 'question'; readonly question: HostQuestion }
  | {
      readonly kind: 'end';
      readonly result: SessionResult;
      readonly cut?: SessionCut | undefined;
      /** Whether the agent got far enough to report its session id. */
      readonly hasStarted: boolean;
    };

/** Facts about a closed session, however it ended. */
export interface SessionAccount {
  readonly sessionId?: string | undefined;
  readonly usage: Usage;
  readonly denials: readonly Denial[];
}

/** A running session with its logs, limits and process. */
export class LiveSession {
  readonly #environment: Environment;
  readonly #observe: Observer;
  readonly #start: SessionStart;
  readonly #session: Session;
  readonly #log: SessionLog;
  readonly #overtime = new AbortController();
  readonly #pids = new Set<number>();
  readonly #denials: Denial[] = [];
  #pending: Promise<TurnEnd> | undefined;
  #sessionId: string | undefined;
  #knownId: string | undefined;
  #onNamed = () => {};
  #usage: Usage = noUsage;
  #cut: SessionCut | undefined;
  #isTimed = false;
  /** Key that the agent must repeat in its `<next>` tag. */
  readonly #key: string | undefined;

  constructor(environment: Environment, observe: Observer, start: SessionStart) {
    this.#environment = environment;
    this.#observe = observe;
    this.#start = start;
    this.#knownId = start.request.resume?.sessionId ?? start.request.sessionId;
    const { stateDir, openLog = openLogFile, worktrees } = environment;
    const { protect } = worktrees;
    const { runId, unit, number, request } = start;
    const log = openLog(logFile({ stateDir, runId }, unit));
    this.#log = new SessionLog(log, () => environment.clock.endOfTurn());
    const { ending } = start;
    this.#key = ending === undefined ? undefined : environment.ids.nextKey();
    const permissions = { ...request.permissions, protect };
    const budgeted = { ...request, permissions, budget: start.left };
    this.#session = environment.openSession(
      ending === undefined || this.#key === undefined
        ? budgeted
        : withEnding(budgeted, { ending, key: this.#key }),
      this.#host(logFile({ stateDir, runId }, unit, `${number}.session`)),
    );
  }

  async next(answer: HostAnswer | undefined): Promise<SessionTurn> {
    this.#watchTime();
    this.#pending ??= this.#session.next(answer);
    const named = new Promise<'named'>(resolve => {
      this.#onNamed = () => resolve('named');
    });
    const first = this.#news === undefined ? await Promise.race([this.#pending, named]) : 'named';
    const sessionId = this.#news;
    if (first === 'named' && sessionId !== undefined) {
      this.#knownId = sessionId;
      return { kind: 'named', sessionId };
    }
    const ended = await this.#pending;
    this.#pending = undefined;
    if (ended.kind === 'question') return ended;
    const turn = this.#key === undefined ? ended : judgedTurn(ended, this.#start.request, this.#key);
    this.#overtime.abort();
    const hasStarted = this.#sessionId !== undefined;
    const cut = this.#cut ?? turn.cut;
    return { kind: 'end', result: turn.result, hasStarted, ...(cut ? { cut } : {}) };
  }

  cancel(): void {
    void this.#session.cancel();
  }

  /** Stops the agent at the next point at which it loses nothing, or at once when `hurry` aborts. */
  suspend(hurry?: AbortSignal): void {
    this.#cut ??= { kind: 'suspend' };
    suspendSession(this.#session, hurry);
  }

  /** Resolves when no process of the session runs any more. */
  async close(): Promise<SessionAccount> {
    this.#overtime.abort();
    await this.#session.close();
    await this.#pending?.catch(() => {});
    this.#log.close();
    const { store } = this.#environment;
    for (const pid of this.#pids) await store.removeProcess(this.#start.runId, pid);
    const sessionId = this.#sessionId ?? this.#knownId;
    return {
      usage: this.#usage,
      denials: this.#denials,
      ...(sessionId === undefined ? {} : { sessionId }),
    };
  }

  /** Id of the session, if it has not been reported yet. */
  get #news(): string | undefined {
    return this.#sessionId === this.#knownId ? undefined : this.#sessionId;
  }

  #host(rawLog: string): SessionHost {
    const { store, settings, env, clock, projectRoot } = this.#environment;
    const { runId, lease, unit, request, number } = this.#start;
    return {
      unit: { ...unit, number },
      onEvent: event => this.#take(event),
      onProcess: async child => {
        this.#pids.add(child.pid);
        await store.addProcess(runId, lease, { ...child, step: unit.step });
      },
      onSurvived: processes => {
        const pids = processes.map(({ pid }) => pid).join(', ');
        this.#observe({ kind: 'notice', message: `${unit.step}: could not stop process ${pids}` });
      },
      graceMs: settings.graceMs,
      inheritEnv: request.cwd === projectRoot ? env : inheritedInWorkspace(env, request.cwd),
      marker: {
        REPRISE_RUN: runId,
        REPRISE_STEP: unit.step,
        REPRISE_ATTEMPT: String(unit.attempt),
        REPRISE_INCARNATION: incarnationOf(lease, unit),
      },
      logFile: rawLog,
      now: () => clock.now(),
    };
  }

  #take(event: AgentEvent): void {
    const { unit, request } = this.#start;
    const { step, worker } = unit;
    this.#log.add(event);
    this.#observe({
      kind: 'agent',
      step,
      ...(worker === undefined ? {} : { worker }),
      folder: request.cwd,
      event,
    });
    if (event.type === 'started' && event.sessionId !== '') {
      this.#sessionId = event.sessionId;
      if (this.#news !== undefined) this.#onNamed();
    }
    if (event.type === 'permission' && event.decision?.kind === 'deny')
      this.#deny(event.tool, event.decision);
    if (event.type === 'usage') this.#spend(event);
    if (event.type === 'note') this.#observe({ kind: 'notice', message: `${step}: ${event.message}` });
  }

  #deny(tool: string, { message, lineToAdd }: Omit<Denial, 'tool'>): void {
    if (this.#denials.length < maxDenials)
      this.#denials.push({ tool, message, ...(lineToAdd ? { lineToAdd } : {}) });
  }

  #spend({ inputTokens, outputTokens, cachedTokens, costUsd }: Usage): void {
    this.#usage = addUsage(this.#usage, { inputTokens, outputTokens, cachedTokens, costUsd });
    const message = overspent(this.#start.left, this.#usage);
    if (message === undefined) return;
    this.#cut ??= { kind: 'budget', message };
    this.suspend();
  }

  #watchTime(): void {
    const { timeoutMs } = this.#start.request.agent;
    if (this.#isTimed || timeoutMs === undefined) return;
    this.#isTimed = true;
    const { clock } = this.#environment;
    clock.waitUntil(clock.now() + timeoutMs, this.#overtime.signal).then(
      () => this.#end({ kind: 'timeout' }),
      () => {},
    );
  }

  #end(cut: SessionCut): void {
    this.#cut ??= cut;
    this.cancel();
  }
}

const maxDenials = 20;
