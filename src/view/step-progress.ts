import type { AgentEvent } from '../agents/session.ts';
import type { ErrorData } from '../core/errors.ts';
import type { EventOf } from '../core/events.ts';
import { isJsonObject, type Json } from '../core/json.ts';
import type { WorkEvent as StepWorkEvent } from '../engine/state/work-state.ts';
import {
  addUsage,
  nothingSpent,
  type Spending,
  sessionSpending,
  spentTogether,
  unknownSession,
} from './cost.ts';
import { firstLine, safeLine } from './safe-text.ts';
import type { StatusWord } from './step-board.ts';

/**
 * What an agent does, in a few words on one line; `undefined` for what is not worth a line. Files in the folder that it
 * works in are called as they are called there.
 */
export function agentAction(event: AgentEvent, folder?: string): string | undefined {
  const within = (text: string) => (folder === undefined ? text : text.replaceAll(`${folder}/`, ''));
  switch (event.type) {
    case 'text':
    case 'thought':
      return firstLine(event.text) || undefined;
    case 'tool-start':
      return within(event.title ? firstLine(event.title) : toolText(event.name, event.input));
    case 'permission':
      return event.decision?.kind === 'deny'
        ? within(`was denied ${toolText(event.tool, event.input)}`)
        : undefined;
    case 'retry':
      return `tries again: ${safeLine(event.reason)}`;
    case 'limit':
      return `ran into a limit: ${safeLine(event.reason)}`;
    case 'started':
    case 'tool-end':
    case 'usage':
    case 'raw':
    case 'done':
      return undefined;
  }
}

/** What tells most about a call, by the names that tools give to it. */
const telling = ['command', 'file_path', 'notebook_path', 'path', 'pattern', 'url', 'query', 'description'];

/** `Edit src/a.ts`, `Bash npm test`. */
function toolText(name: string, input: Json): string {
  const given = isJsonObject(input) ? input : {};
  const value = telling.map(key => given[key]).find(each => typeof each === 'string' && each !== '');
  return safeLine(typeof value === 'string' ? `${name} ${firstLine(value)}` : name);
}

/** What history tells of the work of a step, and of what was made of the work of its workers. */
type WorkEvent = StepWorkEvent | EventOf<'selection.made'>;

export interface WorkspaceProgress {
  /** Relative to the project's root. */
  readonly path: string;
  readonly branch: string;
  readonly base: string;
  readonly saved?: EventOf<'workspace.saved'>['data'] | undefined;
}

interface SessionProgress {
  readonly agent: string;
  readonly kind: string;
  readonly sessionId?: string | undefined;
  /** Absent while it goes on, or if it was cut off. */
  readonly outcome?: EventOf<'session.ended'>['data']['outcome'] | undefined;
}

type Usage = EventOf<'session.ended'>['data']['usage'];

/** Where a step, or one worker of it, works and what came of it: its folder, its agent, what that cost. */
class WorkProgress {
  workspace: WorkspaceProgress | undefined;
  /** The last one. */
  session: SessionProgress | undefined;
  denials: NonNullable<EventOf<'session.ended'>['data']['denials']> = [];
  /** Those of the attempt, in order; a branch that is landed again counts once. */
  landings: readonly EventOf<'landing.ended'>['data'][] = [];
  parked: EventOf<'landing.parked'>['data'] | undefined;
  /** The last one. */
  transition: EventOf<'transition.taken'>['data'] | undefined;
  selection: EventOf<'selection.made'>['data'] | undefined;
  artifacts: NonNullable<EventOf<'step.completed'>['data']['artifacts']> = [];
  /** What the agent did last, in a few words. */
  lastAction: string | undefined;
  /** Of sessions that are over. */
  #ended: Spending = nothingSpent;
  #live: Usage | undefined;
  #underWay = false;

  /** Live ones included. */
  get spent(): Spending {
    if (!this.#underWay || !this.#live) return this.#ended;
    return spentTogether([this.#ended, sessionSpending(this.#live)]);
  }

  /** What an earlier attempt came to no longer counts; what it cost does, and its folder stays. */
  begin(): void {
    this.cutOff();
    this.denials = [];
    this.landings = [];
    this.selection = undefined;
    this.artifacts = [];
    this.lastAction = undefined;
  }

  /** Whoever ran the session is gone. */
  cutOff(): void {
    const isFree = this.session?.kind === 'scripted';
    if (this.#underWay && !isFree) this.#ended = spentTogether([this.#ended, unknownSession]);
    this.#underWay = false;
    this.#live = undefined;
  }

  observe(event: AgentEvent, folder?: string): void {
    if (event.type === 'usage') {
      const { type: _, ...usage } = event;
      this.#live = addUsage(this.#live, usage);
    } else if (event.type === 'started' && this.session) {
      this.session = { ...this.session, sessionId: event.sessionId };
    }
    this.lastAction = agentAction(event, folder) ?? this.lastAction;
  }

  apply(event: WorkEvent): void {
    switch (event.type) {
      case 'workspace.created': {
        const { path, branch, base } = event.data;
        this.workspace = { path, branch, base };
        return;
      }
      case 'workspace.saved':
        if (this.workspace) this.workspace = { ...this.workspace, saved: event.data };
        return;
      case 'session.started': {
        const { agent, kind, sessionId } = event.data;
        this.cutOff();
        this.#underWay = true;
        this.session = { agent, kind, sessionId };
        return;
      }
      case 'session.named':
        if (this.session) this.session = { ...this.session, sessionId: event.data.sessionId };
        return;
      case 'session.ended': {
        const { outcome, usage, denials = [], sessionId = this.session?.sessionId } = event.data;
        this.#ended = spentTogether([this.#ended, sessionSpending(usage)]);
        this.#underWay = false;
        this.#live = undefined;
        this.denials = [...this.denials, ...denials];
        if (this.session) this.session = { ...this.session, sessionId, outcome };
        return;
      }
      case 'landing.started':
        return;
      case 'landing.ended': {
        const { data } = event;
        this.landings = [...this.landings.filter(({ branch }) => branch !== data.branch), data];
        return;
      }
      case 'landing.parked':
        this.parked = event.data;
        return;
      case 'transition.taken':
        this.transition = event.data;
        return;
      case 'selection.made':
        this.selection = event.data;
        return;
    }
  }
}

/** What a step waits for; `until` is in milliseconds since the epoch. */
export type WaitingFor =
  | { readonly on: 'approval'; readonly message: string; readonly choices: readonly string[] }
  | { readonly on: 'signal'; readonly signal: string }
  | { readonly on: 'timer'; readonly until: number | undefined }
  /** A limit of its agent. */
  | { readonly on: 'limit'; readonly until: number; readonly reason: string };

/** Where one step or one worker stands, as history tells it. Times are milliseconds since the epoch. */
export class StepProgress {
  /** `fix`, `fix:1` for a worker, `fix:1/build` inside one. */
  readonly path: string;
  /** Its place in the stable topological order. */
  index = 0;
  parent: StepProgress | undefined;
  /** The steps of the child workflow that it uses, or its workers. */
  children: StepProgress[] = [];
  /** How it became many workers. */
  fanOut: EventOf<'fanout.expanded'>['data'] | undefined;
  /** What is special about this worker. */
  item: Json | undefined;
  status: StatusWord = 'pending';
  /** Of the last start; 0 before the first. Attempts go on counting when a step is started over. */
  attempt = 0;
  /** Since it was last pending, attempts and waits included. */
  startedAt: number | undefined;
  endedAt: number | undefined;
  /** How much of the time since then nobody worked on the run. */
  idleMs = 0;
  waits: WaitingFor[] = [];
  /** When the next attempt starts. */
  retryAt: number | undefined;
  /** Of the last attempt that failed. */
  error: ErrorData | undefined;
  /** Why it was cancelled. */
  reason: string | undefined;
  skipped: EventOf<'step.skipped'>['data'] | undefined;
  answer: EventOf<'approval.given'>['data'] | undefined;
  /** It was at work when its process died, and has not started again. */
  interrupted = false;
  /** Its end was taken over from the run that this one was forked from. */
  reused = false;
  lastLine: string | undefined;
  work = new WorkProgress();
  /** Time at work, waits and pauses between attempts left out. */
  workedMs = 0;
  /** Since when it is at work. */
  workingSince: number | undefined;

  constructor(path: string) {
    this.path = path;
  }

  /** Whether it is one of the workers of a step. */
  get isWorker(): boolean {
    return /:\d+$/.test(this.path);
  }

  /** What it has used up, with all that is inside. */
  get spent(): Spending {
    if (this.children.length === 0) return this.work.spent;
    return spentTogether([this.work.spent, ...this.children.map(child => child.spent)]);
  }

  /** Without the steps around it. */
  get name(): string {
    return this.path.slice(this.path.lastIndexOf('/') + 1);
  }

  get depth(): number {
    return this.parent ? this.parent.depth + 1 : 0;
  }

  get isActive(): boolean {
    return this.status === 'running' || this.status === 'waiting' || this.status === 'retrying';
  }

  get hasEnded(): boolean {
    return this.status !== 'pending' && !this.isActive;
  }

  /** How long it took, or has taken by `now`; undefined if it never started. */
  durationMs(now: number | undefined): number | undefined {
    const until = this.endedAt ?? now;
    if (this.startedAt === undefined || until === undefined || this.reused) return undefined;
    return Math.max(0, until - this.startedAt - this.idleMs);
  }

  /** As if it had never run; its attempts, its time at work and its workspace stay. */
  startOver(): void {
    const { path, index, parent, children, attempt, workedMs, work, item, fanOut } = this;
    const kept = { index, parent, children, attempt, workedMs, work, item, fanOut };
    Object.assign(this, new StepProgress(path), kept);
    work.cutOff();
  }
}
