import type { AgentEvent } from '../agents/session.ts';
import type { EventOf } from '../core/events.ts';
import type { WorkEvent as StepWorkEvent } from '../engine/state/work-state.ts';
import { agentAction } from '../report/agent-action.ts';
import {
  addUsage,
  nothingSpent,
  type Spending,
  sessionSpending,
  spentTogether,
  unknownSession,
} from './cost.ts';

/** What history tells of the work of a step, and of what was made of the work of its workers. */
export type WorkEvent = StepWorkEvent | EventOf<'selection.made'>;

export interface WorkspaceProgress {
  /** Relative to the project's root. */
  readonly path: string;
  readonly branch: string;
  readonly base: string;
  readonly saved?: EventOf<'workspace.saved'>['data'] | undefined;
}

export interface SessionProgress {
  readonly agent: string;
  readonly kind: string;
  readonly sessionId?: string | undefined;
  /** Absent while it goes on, or if it was cut off. */
  readonly outcome?: EventOf<'session.ended'>['data']['outcome'] | undefined;
}

type Usage = EventOf<'session.ended'>['data']['usage'];

/** Where a step, or one worker of it, works and what came of it: its folder, its agent, what that cost. */
export class WorkProgress {
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
