import { addUsage, noUsage, type Usage } from '../../agents/session.ts';
import type { EventOf } from '../../core/events.ts';
import type { KnownLanding, KnownSession, KnownWorkspace, Transition } from '../step/contract.ts';

/** What was used up. Cost that nobody knows makes the sum a lower bound. */
export interface Spent {
  readonly costUsd: number;
  /** Some of it cost what nobody knows. */
  readonly costUnknown: boolean;
  readonly tokens: number;
}

export const nothingSpent: Spent = { costUsd: 0, costUnknown: false, tokens: 0 };

export const spentWith = (spent: Spent, usage: EventOf<'session.ended'>['data']['usage']): Spent => ({
  costUsd: spent.costUsd + (usage.costUsd ?? 0),
  costUnknown: spent.costUnknown || usage.costUsd === null,
  tokens: spent.tokens + usage.inputTokens + usage.outputTokens,
});

export type WorkEvent = {
  [T in WorkEventType]: EventOf<T>;
}[WorkEventType];

type WorkEventType =
  | 'workspace.created'
  | 'workspace.saved'
  | 'session.started'
  | 'session.named'
  | 'session.ended'
  | 'landing.started'
  | 'landing.ended'
  | 'landing.parked'
  | 'transition.taken';

/** What history says of the work of a step: its folder, its session, what it used up. */
export class WorkState {
  workspace: KnownWorkspace | undefined;
  /** Begun, and not ended but by a limit: to be gone on with. */
  session: (Omit<KnownSession, 'sessionId'> & { readonly sessionId: string | undefined }) | undefined;
  /** The last one that has a name, however it ended. */
  lastSession: KnownSession | undefined;
  /** Begun in this attempt. */
  sessions = 0;
  /** How often in this attempt it was landed anew after a session: one that was cut short has changed nothing. */
  reworks = 0;
  /** Begun in this attempt, by branch, with how they ended. */
  readonly landings = new Map<string, KnownLanding>();
  /** Taken in this attempt, in order. */
  transitions: readonly Transition[] = [];
  spent: Spent = nothingSpent;
  #isOpen = false;
  /** A session has ended, and whoever held it goes on with what it came to. */
  #isReworked = false;

  newAttempt(): void {
    this.session = undefined;
    this.sessions = 0;
    this.reworks = 0;
    this.#isReworked = false;
    this.landings.clear();
    this.transitions = [];
  }

  /** Whoever was at it has died: what its last session came to may not have been saved. */
  interrupt(): void {
    this.#isReworked = false;
  }

  apply(event: WorkEvent): void {
    switch (event.type) {
      case 'workspace.created':
        this.workspace = { ...event.data, attempt: event.attempt ?? 1 };
        return;
      case 'workspace.saved':
        if (this.workspace) this.workspace = { ...this.workspace, commit: event.data.commit };
        return;
      case 'session.started': {
        const { agent, number, sessionId, kind } = event.data;
        // Whoever held the last one died with it: what it cost nobody will ever say.
        if (this.#isOpen && kind !== 'scripted') this.spent = { ...this.spent, costUnknown: true };
        this.#isOpen = true;
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
        this.#isOpen = false;
        this.#isReworked = event.data.outcome !== 'limit';
        this.#addToLast(event.data.usage);
        this.session =
          event.data.outcome === 'limit' && this.session
            ? { ...this.session, usage: addUsage(this.session.usage ?? noUsage, event.data.usage) }
            : undefined;
        return;
      case 'landing.started':
        this.#countRework();
        this.landings.set(event.data.branch, undefined);
        return;
      case 'landing.ended':
        // Of what somebody else is to land, no start is noted.
        this.#countRework();
        this.landings.set(event.data.branch, event.data);
        return;
      case 'landing.parked':
        return;
      case 'transition.taken':
        this.transitions = [...this.transitions, event.data];
        return;
    }
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
