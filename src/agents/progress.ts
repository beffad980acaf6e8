import type { AgentEvent, Denial, SessionHost, SessionRequest, Usage } from './session.ts';
import { addUsage, noUsage, priced } from './usage.ts';

const mostDenials = 100;

/** Hands events on to the host, and remembers what the result will have to say. */
export class Progress {
  readonly #host: SessionHost;
  readonly #price: SessionRequest['agent']['price'];
  #sessionId: string | undefined;
  #usage: Usage = noUsage;
  #isDone = false;
  readonly #denials: Denial[] = [];

  constructor(request: SessionRequest, host: SessionHost) {
    this.#host = host;
    this.#price = request.agent.price;
  }

  /** Nothing is told after `done`. */
  tell(event: AgentEvent): void {
    if (this.#isDone) return;
    const told = event.type === 'usage' ? { ...event, ...priced(event, this.#price) } : event;
    this.#remember(told);
    this.#host.onEvent(told);
  }

  soFar() {
    const sessionId = this.#sessionId;
    return {
      usage: this.#usage,
      denials: [...this.#denials],
      ...(sessionId === undefined ? {} : { sessionId }),
    };
  }

  #remember(event: AgentEvent): void {
    if (event.type === 'started') this.#sessionId = event.sessionId;
    if (event.type === 'usage') {
      const { type: _, ...used } = event;
      this.#usage = addUsage(this.#usage, used);
    }
    if (event.type === 'done') this.#isDone = true;
    if (
      event.type === 'permission' &&
      event.decision?.kind === 'deny' &&
      this.#denials.length < mostDenials
    ) {
      const { message, lineToAdd } = event.decision;
      this.#denials.push({ tool: event.tool, message, ...(lineToAdd ? { lineToAdd } : {}) });
    }
  }
}
