import type { AgentEvent } from '../../agents/session.ts';
import type { Log } from '../../process/log.ts';

/** Of what a tool was given and printed: nothing that is shown anywhere has more of it. */
export const longestOutput = 2000;

/** What an agent does, as lines for people to read. */
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
      return `! trying again (${event.attempt}): ${event.reason}`;
    case 'limit':
      return `! ${event.reason}`;
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

/** Appends to a log, once for all that comes in together. */
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
