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
import type { ShellEnd } from '../../process/shell-step.ts';
import { longestOutput } from '../step/agent/live-session.ts';
import type { OutputText, Recording } from './session-file.ts';

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
type Said = 'last' | 'all';

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

/** The end of an output as the lines that are recorded already, with what is left of a line before them. */
interface TailOfLines {
  readonly lines: number;
  readonly first?: string | undefined;
  /** The last line was not ended. */
  readonly open?: true | undefined;
}

/** More than the end of an output that is ever kept. */
const keptLines = 20_000;

/** Makes lines of what a script prints and how it ends. */
export class ShellEncoder {
  #last: string[] = [];

  output(stream: OutputText['stream'], lines: readonly string[]): object {
    this.#last.push(...lines);
    if (this.#last.length > 2 * keptLines) this.#last = this.#last.slice(-keptLines);
    return { [stream === 'stdout' ? 'out' : 'err']: lines.join('\n') };
  }

  end(end: ShellEnd): object {
    if (end.kind === 'cancelled') return { end };
    const { tail, ...rest } = end;
    return { end: { ...rest, ...(tail === '' ? {} : { tail: tailOfLines(tail, this.#last) ?? tail }) } };
  }
}

/** `undefined` if the tail is not what the lines end with, as when two streams got mixed. */
function tailOfLines(tail: string, lines: readonly string[]): TailOfLines | undefined {
  const isOpen = !tail.endsWith('\n');
  const wanted = (isOpen ? tail : tail.slice(0, -1)).split('\n');
  const there = lines.slice(-wanted.length);
  if (there.length < wanted.length) return undefined;
  const same = wanted.every((line, index) => index === 0 || line === there[index]);
  const first = wanted[0] ?? '';
  if (!same || !there[0]?.endsWith(first)) return undefined;
  const isWhole = there[0] === first;
  return {
    lines: isWhole ? wanted.length : wanted.length - 1,
    ...(isWhole ? {} : { first }),
    ...(isOpen ? { open: true } : {}),
  };
}

export function textOfTail({ lines, first, open }: TailOfLines, output: readonly string[]): string {
  const last = lines === 0 ? [] : output.slice(-lines);
  return [...(first === undefined ? [] : [first]), ...last].join('\n') + (open ? '' : '\n');
}

/** What was printed, line by line. */
export const linesOf = (output: readonly OutputText[]): readonly string[] =>
  output.flatMap(({ text }) => text.split('\n'));

/** Where tools say what went wrong. */
const keptOfEnd = 200;

/** What is left out must be worth the words that say so. */
const leastLeftOut = 200;

/**
 * A recording for a case, without the middle of what tools printed: a replay shows none of it. What scripts of steps
 * printed stays whole, because it is their output.
 */
export function withShownOutputs(recording: Recording): Recording {
  if (recording.kind !== 'session') return recording;
  const lines = recording.lines.map(line =>
    line.kind === 'event' ? { ...line, event: withShownOutput(line.event) } : line,
  );
  return { ...recording, lines };
}

/** For a case that does not show thoughts: what it records itself has none either. */
export const withoutThoughts = (recording: Recording): Recording =>
  recording.kind === 'session'
    ? {
        ...recording,
        lines: recording.lines.filter(line => line.kind !== 'event' || line.event.type !== 'thought'),
      }
    : recording;

function withShownOutput(event: AgentEvent): AgentEvent {
  if (event.type !== 'tool-end' || event.output === undefined) return event;
  const { output } = event;
  const leftOut = output.length - longestOutput - keptOfEnd;
  if (leftOut < leastLeftOut) return event;
  const [start, end] = [output.slice(0, longestOutput), output.slice(-keptOfEnd)];
  return { ...event, output: `${start}\n[… ${leftOut} characters …]\n${end}` };
}
