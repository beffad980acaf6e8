import { isDeepStrictEqual } from 'node:util';
import {
  type AgentEvent,
  addUsage,
  type Denial,
  type HostAnswer,
  type HostQuestion,
  noUsage,
  type SessionCut,
  type SessionResult,
  type Usage,
} from '../../agents/index.ts';
import type { Json } from '../../core/index.ts';
import type { ShellEnd } from '../../process/index.ts';
import { longestOutput } from '../step/agent/live-session.ts';
import type { OutputText, RecordedActivity } from './session-file.ts';

/** Facts from the lines so far, so that later lines need not repeat them. */
export class SessionMemory {
  sessionId: string | undefined;
  lastText: string | undefined;
  readonly #allText: string[] = [];
  wish: { readonly tool: string; readonly input: Json } | undefined;
  /** Id of the tool that was started last. */
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
      case 'note':
      case 'raw':
      case 'done':
        break;
    }
  }
}

/** Earlier occurrence of the text of a result: in the last message or in all messages together. */
type Said = 'last' | 'all';

/** Encodes the events of a session as lines. Omits what earlier lines already contain. */
export class SessionEncoder {
  readonly #memory = new SessionMemory();
  #usages: Usage[] = [];

  /** Returns `undefined` for an event that the end of the session implies. */
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

  /** `why` is set if the host cut the session short, `interrupted` if the result was not used. */
  end(
    result: SessionResult,
    { why, interrupted }: { readonly why?: SessionCut | undefined; readonly interrupted: boolean },
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
      case 'note':
        return event;
    }
  }

  #withoutWish<T extends { readonly tool: string; readonly input: Json }>(wish: T): object {
    const { tool, input, ...rest } = wish;
    return isDeepStrictEqual(this.#memory.wish, { tool, input }) ? rest : wish;
  }

  /** Records each usage only if the sum is not enough: a budget runs out at one of them. */
  #usageLines(result: SessionResult, why: SessionCut | undefined): readonly object[] {
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

/** The tail of an output as a number of recorded lines, preceded by the rest of a partial line. */
interface TailOfLines {
  readonly lines: number;
  readonly first?: string | undefined;
  /** Set if the last line does not end with a newline. */
  readonly open?: true | undefined;
}

/** Number of recent lines to remember. It exceeds the length of any tail. */
const keptLines = 20_000;

/** Encodes the output and the end of a script as lines. */
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

/** Returns `undefined` if the lines do not end with the tail, as when two streams are interleaved. */
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

/** Returns the output line by line. */
export const linesOf = (output: readonly OutputText[]): readonly string[] =>
  output.flatMap(({ text }) => text.split('\n'));

/** Number of characters to keep at the end, where tools report errors. */
const keptTail = 200;

/** Minimum number of characters to omit. Fewer are not worth the notice. */
const minOmitted = 200;

/**
 * Shortens the output of tools for a case by omitting the middle, which a replay never shows. The output of step
 * scripts stays complete, because it is their result.
 */
export function withShownOutputs(recording: RecordedActivity): RecordedActivity {
  if (recording.kind !== 'session') return recording;
  const lines = recording.lines.map(line =>
    line.kind === 'event' ? { ...line, event: withShownOutput(line.event) } : line,
  );
  return { ...recording, lines };
}

/** Drops thoughts, for a case that does not record them. */
export const withoutThoughts = (recording: RecordedActivity): RecordedActivity =>
  recording.kind === 'session'
    ? {
        ...recording,
        lines: recording.lines.filter(line => line.kind !== 'event' || line.event.type !== 'thought'),
      }
    : recording;

function withShownOutput(event: AgentEvent): AgentEvent {
  if (event.type !== 'tool-end' || event.output === undefined) return event;
  const { output } = event;
  const omitted = output.length - longestOutput - keptTail;
  if (omitted < minOmitted) return event;
  const [start, end] = [output.slice(0, longestOutput), output.slice(-keptTail)];
  return { ...event, output: `${start}\n[… ${omitted} characters …]\n${end}` };
}
