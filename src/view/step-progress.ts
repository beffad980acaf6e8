import { stripVTControlCharacters } from 'node:util';
import type { AgentEvent } from '../agents/index.ts';
import { type ErrorData, type EventOf, isJsonObject, type Json } from '../core/index.ts';
import type { StepWorkEvent } from '../engine/state/index.ts';
import {
  addUsage,
  nothingSpent,
  type SessionUsage,
  type Spending,
  sessionSpending,
  spentTogether,
  unknownSession,
} from './cost.ts';
import type { StatusWord } from './step-board.ts';

/** Characters that reorder or hide text. */
const invisible = /[\u061C\u200B\u200E\u200F\u202A-\u202E\u2060\u2066-\u2069\uFEFF]/gu;
const lineBreak = /\r\n|[\u0085\u2028\u2029]/gu;
/** Control characters except the line feed, and lone surrogates. */
const harmful = /(?!\n)[\p{Cc}\p{Cs}]/gu;

/**
 * Makes untrusted text (names, messages, output) safe for a terminal: removes escape sequences, and replaces other
 * control characters with a visible mark and tabs with spaces. Keeps line feeds. Every view passes untrusted text
 * through here.
 */
export function safeText(text: string): string {
  return stripVTControlCharacters(text)
    .replace(lineBreak, '\n')
    .replaceAll('\t', '  ')
    .replace(invisible, '')
    .replace(harmful, '\uFFFD');
}

/** Like `safeText`, but on one line. If carriage returns overwrote a line, only the last version is kept. */
export function safeLine(text: string): string {
  const lines = text.trimEnd().split('\n');
  return safeText(lines.map(lastWritten).join(' ')).replaceAll('\n', ' ').trim();
}

/** Makes one output line of a program safe for a terminal, and keeps its indentation. */
export const safeOutput = (line: string): string =>
  safeText(lastWritten(line)).replaceAll('\n', ' ').trimEnd();

function lastWritten(line: string): string {
  const written = line.replace(/\r+$/, '');
  return written.slice(written.lastIndexOf('\r') + 1);
}

/** First line of a message. */
export const firstLine = (text: string): string => safeLine(text.trimStart().split('\n', 1)[0] ?? '');

/** Lines of a message after the first, without leading and trailing empty ones. */
export function furtherLines(text: string): readonly string[] {
  const lines = text
    .trim()
    .split('\n')
    .slice(1)
    .map(line => safeText(line).replaceAll('\n', ' ').trimEnd());
  const first = lines.findIndex(line => line !== '');
  return first === -1 ? [] : lines.slice(first);
}

/**
 * Describes an event of an agent on one line; `undefined` if it is not worth one. Paths inside the workspace are shown
 * relative to it.
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
        ? within(`denied: ${toolText(event.tool, event.input)}`)
        : undefined;
    case 'retry':
      return `retrying: ${safeLine(event.reason)}`;
    case 'limit':
      return `reached a limit: ${safeLine(event.reason)}`;
    case 'started':
    case 'tool-end':
    case 'usage':
    case 'note':
    case 'raw':
    case 'done':
      return undefined;
  }
}

/** Inputs that describe a tool call best, most significant first. */
const significantFields = [
  'command',
  'file_path',
  'notebook_path',
  'path',
  'pattern',
  'url',
  'query',
  'description',
];

/** `Edit src/a.ts`, `Bash npm test`. */
function toolText(name: string, input: Json): string {
  const given = isJsonObject(input) ? input : {};
  const value = significantFields
    .map(key => given[key])
    .find(each => typeof each === 'string' && each !== '');
  return safeLine(typeof value === 'string' ? `${name} ${firstLine(value)}` : name);
}

/** Events about the work of a step and the selection among its copies. */
type WorkProgressEvent = StepWorkEvent | EventOf<'selection.made'>;

export interface WorkspaceProgress {
  /** Path relative to the root of the project. */
  readonly path: string;
  readonly branch: string;
  readonly base: string;
  readonly saved?: EventOf<'workspace.saved'>['data'] | undefined;
}

interface SessionProgress {
  readonly agent: string;
  readonly kind: string;
  readonly sessionId?: string | undefined;
  /** Outcome. Absent while the session is running, or if it was interrupted. */
  readonly outcome?: EventOf<'session.ended'>['data']['outcome'] | undefined;
}

/** Work of a step, or of one copy: its workspace, its agent and its cost. */
class WorkProgress {
  workspace: WorkspaceProgress | undefined;
  /** Latest session. */
  session: SessionProgress | undefined;
  denials: NonNullable<EventOf<'session.ended'>['data']['denials']> = [];
  /** Landings of the current attempt, in order. Only the last landing of each branch is kept. */
  landings: readonly EventOf<'landing.ended'>['data'][] = [];
  parked: EventOf<'landing.parked'>['data'] | undefined;
  delivered: EventOf<'landing.delivered'>['data'] | undefined;
  /** Judgements of the answers in the current attempt, in order. */
  checked: readonly EventOf<'work.checked'>['data'][] = [];
  /** Latest transition. */
  transition: EventOf<'transition.taken'>['data'] | undefined;
  selection: EventOf<'selection.made'>['data'] | undefined;
  artifacts: NonNullable<EventOf<'step.completed'>['data']['artifacts']> = [];
  /** Description of the last action of the agent. */
  lastAction: string | undefined;
  /** Spending of ended sessions. */
  #ended: Spending = nothingSpent;
  #live: SessionUsage | undefined;
  #underWay = false;

  /** Spending of all sessions, including a running one. */
  get spent(): Spending {
    if (!this.#underWay || !this.#live) return this.#ended;
    return spentTogether([this.#ended, sessionSpending(this.#live)]);
  }

  /** Starts a new attempt. Discards the results of the previous one, but keeps its cost and its workspace. */
  begin(): void {
    this.cutOff();
    this.denials = [];
    this.checked = [];
    this.landings = [];
    this.selection = undefined;
    this.artifacts = [];
    this.lastAction = undefined;
  }

  /** Ends a session whose process died. Its cost stays unknown. */
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

  apply(event: WorkProgressEvent): void {
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
      case 'landing.delivered':
        this.delivered = event.data;
        return;
      case 'landing.parked':
        this.parked = event.data;
        return;
      case 'work.checked':
        this.checked = [...this.checked, event.data];
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

/** What a step is waiting for. `until` is in milliseconds since the epoch. */
export type WaitingFor =
  | ({ readonly on: 'approval' } & EventOf<'approval.requested'>['data'])
  | { readonly on: 'signal'; readonly signal: string }
  | { readonly on: 'timer'; readonly until: number | undefined }
  /** A usage limit of its agent. */
  | { readonly on: 'limit'; readonly until: number; readonly reason: string };

/** Progress of one step or copy, derived from the history. Times are milliseconds since the epoch. */
export class StepProgress {
  /** Path: `fix`, `fix:1` for a copy, `fix:1/build` for a step inside a copy. */
  readonly path: string;
  /** Position in the stable topological order. */
  index = 0;
  parent: StepProgress | undefined;
  /** Steps of its child workflow, or its copies. */
  children: StepProgress[] = [];
  /** Fan-out into copies. */
  fanOut: EventOf<'fanout.expanded'>['data'] | undefined;
  /** Matrix values of this copy. */
  item: Json | undefined;
  status: StatusWord = 'pending';
  /** Number of the last attempt; 0 before the first. Restarting the step does not reset it. */
  attempt = 0;
  /** Start of the first attempt since the step was last pending. */
  startedAt: number | undefined;
  endedAt: number | undefined;
  /** Time since `startedAt` during which no process executed the run. */
  idleMs = 0;
  waits: WaitingFor[] = [];
  /** Start of the next attempt. */
  retryAt: number | undefined;
  /** Error of the last failed attempt. */
  error: ErrorData | undefined;
  /** Reason for the cancellation. */
  reason: string | undefined;
  skipped: EventOf<'step.skipped'>['data'] | undefined;
  answer: EventOf<'approval.given'>['data'] | undefined;
  /** Whether it was running when its process died, and has not started again. */
  interrupted = false;
  /** Whether its result is reused from the run that this one was forked from. */
  reused = false;
  lastLine: string | undefined;
  work = new WorkProgress();
  /** Running time, without waits and pauses between attempts. */
  workedMs = 0;
  /** Start of the current running period. */
  workingSince: number | undefined;

  constructor(path: string) {
    this.path = path;
  }

  /** Whether it is a copy of a step. */
  get isWorker(): boolean {
    return /:\d+$/.test(this.path);
  }

  /** Spending of the step and its children. */
  get spent(): Spending {
    if (this.children.length === 0) return this.work.spent;
    return spentTogether([this.work.spent, ...this.children.map(child => child.spent)]);
  }

  /** Last part of the path. */
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

  /** Duration, up to `now` if it has not ended; `undefined` if it never started. */
  durationMs(now: number | undefined): number | undefined {
    const until = this.endedAt ?? now;
    if (this.startedAt === undefined || until === undefined || this.reused) return undefined;
    return Math.max(0, until - this.startedAt - this.idleMs);
  }

  /** Resets the step. Keeps its number of attempts, its running time and its workspace. */
  startOver(): void {
    const { path, index, parent, children, attempt, workedMs, work, item, fanOut } = this;
    const kept = { index, parent, children, attempt, workedMs, work, item, fanOut };
    Object.assign(this, new StepProgress(path), kept);
    work.cutOff();
  }
}
