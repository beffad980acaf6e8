import { addUsage, noUsage, type Usage } from '../../agents/index.ts';
import type { EventOf } from '../../core/index.ts';
import type {
  KnownAnswer,
  KnownLanding,
  KnownSession,
  KnownWorkspace,
  Transition,
} from '../step/contract.ts';

/** Total spending. If the cost of a session is unknown, the total is a lower bound. */
export interface SpentTotals {
  readonly costUsd: number;
  /** Whether the cost of some session is unknown. */
  readonly costUnknown: boolean;
  readonly tokens: number;
}

export const nothingSpent: SpentTotals = { costUsd: 0, costUnknown: false, tokens: 0 };

export const spentWith = (
  spent: SpentTotals,
  usage: EventOf<'session.ended'>['data']['usage'],
): SpentTotals => ({
  costUsd: spent.costUsd + (usage.costUsd ?? 0),
  costUnknown: spent.costUnknown || usage.costUsd === null,
  tokens: spent.tokens + usage.inputTokens + usage.outputTokens,
});

export type StepWorkEvent = {
  [T in StepWorkEventType]: EventOf<T>;
}[StepWorkEventType];

type StepWorkEventType =
  | 'workspace.created'
  | 'workspace.saved'
  | 'session.started'
  | 'session.named'
  | 'session.ended'
  | 'landing.started'
  | 'landing.ended'
  | 'landing.delivered'
  | 'landing.parked'
  | 'work.checked'
  | 'transition.taken';

/** Outcomes after which the same attempt can continue the session. Any other attempt begins a new one. */
const isResumable: ReadonlySet<string> = new Set(['limit', 'suspended', 'cancelled']);

/** What history knows about the work of a step: its workspace, its sessions and its spending. */
export class WorkState {
  workspace: KnownWorkspace | undefined;
  /** Session to resume: it has started and has not ended, or it was stopped before its result. */
  session: (Omit<KnownSession, 'sessionId'> & { readonly sessionId: string | undefined }) | undefined;
  /** Last session that has an id, however it ended. */
  lastSession: KnownSession | undefined;
  /** Result of the last session, until the step has used it. */
  answer: KnownAnswer | undefined;
  /** Number of sessions with a result in this attempt, since its last transition. */
  answers = 0;
  /** Number of sessions started in this attempt. */
  sessions = 0;
  /** Number of times this attempt landed again after a session. An interrupted session does not count. */
  reworks = 0;
  /** Landings started in this attempt and their outcomes, by branch. */
  readonly landings = new Map<string, KnownLanding>();
  /** Delivery of this attempt, if it has ended. */
  delivered: EventOf<'landing.delivered'>['data'] | undefined;
  /** Transitions taken in this attempt, in order. */
  transitions: readonly Transition[] = [];
  spent: SpentTotals = nothingSpent;
  /** Whether a session has started and not ended. */
  isOpen = false;
  /** Whether a session has ended and its result has not been landed yet. */
  #isReworked = false;
  /** Whether the process died after the last session. */
  #isInterrupted = false;

  newAttempt(): void {
    this.session = undefined;
    this.answer = undefined;
    this.answers = 0;
    this.sessions = 0;
    this.reworks = 0;
    this.#isReworked = false;
    this.#isInterrupted = false;
    this.landings.clear();
    this.delivered = undefined;
    this.transitions = [];
  }

  /** Discards the pending rework: the process died, so the result of the last session may not have been saved. */
  interrupt(): void {
    this.#isReworked = false;
    this.#isInterrupted = true;
  }

  apply(event: StepWorkEvent): void {
    switch (event.type) {
      case 'workspace.created':
        this.workspace = { ...event.data, attempt: event.attempt ?? 1 };
        return;
      case 'workspace.saved':
        if (this.workspace) this.workspace = { ...this.workspace, commit: event.data.commit };
        this.answer = undefined;
        return;
      case 'session.started': {
        const { agent, number, sessionId, kind } = event.data;
        // The process died during the previous session, so its cost will never be known.
        if (this.isOpen && kind !== 'scripted') this.spent = { ...this.spent, costUnknown: true };
        this.isOpen = true;
        this.#isInterrupted = false;
        this.answer = undefined;
        const before = this.session?.sessionId === sessionId ? this.session?.usage : undefined;
        this.session = { agent, number, sessionId, usage: before };
        this.sessions = number + 1;
        this.#remember();
        return;
      }
      case 'session.named':
        if (this.session) this.session = { ...this.session, sessionId: event.data.sessionId };
        this.#remember();
        return;
      case 'session.ended':
        this.spent = spentWith(this.spent, event.data.usage);
        this.isOpen = false;
        this.#isReworked = event.data.outcome !== 'limit';
        this.#addToLast(event.data.usage);
        this.#takeAnswer(event.data);
        this.session =
          isResumable.has(event.data.outcome) && this.session
            ? { ...this.session, usage: addUsage(this.session.usage ?? noUsage, event.data.usage) }
            : undefined;
        return;
      case 'landing.started':
        // After a crash the landing is repeated before the step comes to the answer again.
        if (!this.#isInterrupted) this.answer = undefined;
        this.#countRework();
        this.landings.set(event.data.branch, undefined);
        return;
      case 'landing.ended':
        // A landing that Reprise only prepares, as with `land: pr`, has no `landing.started`.
        this.#countRework();
        this.landings.set(event.data.branch, event.data);
        return;
      case 'landing.delivered':
        this.delivered = event.data;
        return;
      case 'landing.parked':
      case 'work.checked':
        return;
      case 'transition.taken':
        this.transitions = [...this.transitions, event.data];
        this.answer = undefined;
        this.answers = 0;
        return;
    }
  }

  #takeAnswer({ answer, error, usage, denials }: EventOf<'session.ended'>['data']): void {
    if (!this.session || !(answer || error)) return;
    const { agent, sessionId } = this.session;
    const used = this.lastSession?.sessionId === sessionId ? this.lastSession?.usage : undefined;
    this.answers++;
    this.answer = { agent, sessionId, usage: used ?? usage, denials, answer, error };
  }

  #countRework(): void {
    if (this.#isReworked) this.reworks++;
    this.#isReworked = false;
  }

  #remember(): void {
    const { sessionId } = this.session ?? {};
    if (!this.session || sessionId === undefined) return;
    const usage = this.lastSession?.sessionId === sessionId ? this.lastSession.usage : undefined;
    this.lastSession = { ...this.session, sessionId, usage };
  }

  #addToLast(usage: Usage): void {
    const last = this.lastSession;
    if (last && last.sessionId === this.session?.sessionId)
      this.lastSession = { ...last, usage: addUsage(last.usage ?? noUsage, usage) };
  }
}
