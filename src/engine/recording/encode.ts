import { isDeepStrictEqual } from 'node:util';
import {
  type AgentEvent,
  addUsage,
  type Cut,
  type Denial,
  type HostAnswer,
  type HostQuestion,
  noUsage,
  type SessionResult,
  type Usage,
} from '../../agents/session.ts';
import type { Json } from '../../core/json.ts';

/** What stands in the lines so far, so that a line need not say again what an earlier one said. */
export class SessionMemory {
  sessionId: string | undefined;
  lastText: string | undefined;
  readonly #allText: string[] = [];
  wish: { readonly tool: string; readonly input: Json } | undefined;
  /** The tool that was started last. */
  toolId: string | undefined;
  readonly denials: Denial[] = [];

  get allText(): string {
    return this.#allText.join('\n').trim();
  }

  take(event: AgentEvent): void {
    switch (event.type) {
      case 'started':
        this.sessionId = event.sessionId;
        break;
      case 'text':
        this.lastText = event.text;
        this.#allText.push(event.text);
        break;
      case 'tool-start':
        this.wish = { tool: event.name, input: event.input };
        this.toolId = event.id;
        break;
      case 'permission': {
        const { tool, input, decision } = event;
        this.wish = { tool, input };
        if (decision?.kind === 'deny') {
          const { message, lineToAdd } = decision;
          this.denials.push({ tool, message, ...(lineToAdd ? { lineToAdd } : {}) });
        }
        break;
      }
      case 'thought':
      case 'tool-end':
      case 'usage':
      case 'retry':
      case 'limit':
      case 'raw':
      case 'done':
        break;
    }
  }
}

/** Where the text of a result was said already. */
export type Said = 'last' | 'all';

/** Makes lines of what happens in a session, one by one. Nothing is said twice. */
export class SessionEncoder {
  readonly #memory = new SessionMemory();
  #usages: Usage[] = [];

  /** `undefined` if it says nothing that the end of the session does not say as well. */
  event(event: AgentEvent): object | undefined {
    const line = this.#lineOf(event);
    this.#memory.take(event);
    return line;
  }

  question(question: HostQuestion): object {
    return { question: question.kind === 'permission' ? this.#withoutWish(question) : question };
  }

  answer(answer: HostAnswer): object {
    return { answer };
  }

  /** `why` if the host ended it; `interrupted` if nobody took the result. */
  end(
    result: SessionResult,
    { why, interrupted }: { readonly why?: Cut | undefined; readonly interrupted: boolean },
  ): readonly object[] {
    const short = this.#shortened(result);
    const line = interrupted ? { interrupted: short } : { result: short, ...(why ? { cut: why } : {}) };
    return [...this.#usageLines(result, why), line];
  }

  #lineOf(event: AgentEvent): object | undefined {
    switch (event.type) {
      case 'text':
        return { text: event.text };
      case 'thought':
        return { thought: event.text };
      case 'permission':
        return this.#withoutWish(event);
      case 'raw':
        return event.line.trim() === '' ? undefined : event;
      case 'usage': {
        const { type: _, ...usage } = event;
        this.#usages.push(usage);
        return undefined;
      }
      case 'done':
        return undefined;
      case 'tool-end': {
        const { id, ...rest } = event;
        return id === this.#memory.toolId ? rest : event;
      }
      case 'started':
      case 'tool-start':
      case 'retry':
      case 'limit':
        return event;
    }
  }

  #withoutWish<T extends { readonly tool: string; readonly input: Json }>(wish: T): object {
    const { tool, input, ...rest } = wish;
    return isDeepStrictEqual(this.#memory.wish, { tool, input }) ? rest : wish;
  }

  /** One by one only where the order counts: a budget is used up at one of them. */
  #usageLines(result: SessionResult, why: Cut | undefined): readonly object[] {
    const isSum = isDeepStrictEqual(this.#usages.reduce(addUsage, noUsage), result.usage);
    return isSum && why?.kind !== 'budget' ? [] : this.#usages.map(usage => ({ type: 'usage', ...usage }));
  }

  #shortened(result: SessionResult): object {
    const { sessionId, usage, denials, ...rest } = result;
    const { text, ...others } = 'text' in rest ? rest : { ...rest, text: undefined };
    const said = text === undefined ? undefined : this.#whereSaid(text);
    return {
      ...others,
      ...(said ? { said } : text === undefined ? {} : { text }),
      ...(sessionId === this.#memory.sessionId ? {} : { sessionId: sessionId ?? null }),
      ...(isDeepStrictEqual(usage, noUsage) ? {} : { usage }),
      ...(isDeepStrictEqual(denials, this.#memory.denials) ? {} : { denials }),
    };
  }

  #whereSaid(text: string): Said | undefined {
    if (text === this.#memory.lastText) return 'last';
    return text !== '' && text === this.#memory.allText ? 'all' : undefined;
  }
}
