import {
  type EndedTrees,
  isSameProcess,
  type OutputStream,
  type RunningProcess,
} from '../../process/index.ts';
import {
  type AgentEvent,
  addUsage,
  type Denial,
  type HostAnswer,
  type HostQuestion,
  noUsage,
  priced,
  type SessionHost,
  type SessionRequest,
  type SessionResult,
  type TurnEnd,
  type Usage,
} from '../session.ts';
import { rawEvent } from './protocol.ts';

interface PendingQuestion {
  readonly question: HostQuestion;
  readonly onAnswer: (answer: HostAnswer) => void;
}

/** The questions of a session, one after another, and its end. */
export class TurnQueue {
  readonly #pending: PendingQuestion[] = [];
  #handedOut: PendingQuestion | undefined;
  #end: TurnEnd | undefined;
  #wake = () => {};

  get isOver(): boolean {
    return this.#end !== undefined;
  }

  ask(question: HostQuestion, onAnswer: (answer: HostAnswer) => void): void {
    this.#pending.push({ question, onAnswer });
    this.#wake();
  }

  /** The answer would come too late. */
  withdraw(id: string): void {
    const isThis = ({ question }: PendingQuestion) => question.kind === 'permission' && question.id === id;
    const index = this.#pending.findIndex(isThis);
    if (index >= 0) this.#pending.splice(index, 1);
    if (this.#handedOut && isThis(this.#handedOut)) this.#handedOut = undefined;
  }

  /** Only the first end counts. */
  end(result: SessionResult): void {
    this.#end ??= { kind: 'end', result };
    this.#wake();
  }

  async next(answer?: HostAnswer): Promise<TurnEnd> {
    if (answer) this.#takeAnswer(answer);
    for (;;) {
      if (this.#end) return this.#end;
      const [first] = this.#pending;
      if (first) {
        this.#handedOut = first;
        return { kind: 'question', question: first.question };
      }
      await new Promise<void>(resolve => {
        this.#wake = resolve;
      });
    }
  }

  #takeAnswer(answer: HostAnswer): void {
    const answered = this.#handedOut;
    if (!answered) return;
    this.#handedOut = undefined;
    this.#pending.splice(this.#pending.indexOf(answered), 1);
    answered.onAnswer(answer);
  }
}

/** Longer lines are not read: an agent that prints such a thing must not take our memory. */
export const longestLine = 8 * 1024 * 1024;

const keptComplaints = 15;
const keptLength = 500;

interface ListenerOptions {
  readonly onLine: (line: string) => void;
  /** Told of lines that were too long. */
  readonly onCut: (event: AgentEvent) => void;
  readonly onStall: () => void;
  readonly stallMs: number | undefined;
}

/** Hears what an agent prints: hands on its lines, keeps its last words, and notices silence. */
export class OutputListener {
  readonly #options: ListenerOptions;
  readonly #complaints: string[] = [];
  #timer: NodeJS.Timeout | undefined;
  #lastLine: string | undefined;
  #cutLines = 0;

  constructor(options: ListenerOptions) {
    this.#options = options;
  }

  readonly take = (stream: OutputStream, line: string, isCut: boolean): void => {
    this.#timer?.refresh();
    if (stream === 'stderr') this.#complain(line);
    else this.#hear(line, isCut);
  };

  /** From now on, silence counts. */
  expectWords(): void {
    const { stallMs, onStall } = this.#options;
    if (stallMs === undefined) return;
    this.stopWaiting();
    this.#timer = setTimeout(onStall, stallMs);
  }

  /** Nobody expects the agent to say anything. */
  stopWaiting(): void {
    clearTimeout(this.#timer);
    this.#timer = undefined;
  }

  lastWords() {
    return {
      stderr: this.#complaints.join('\n').trim(),
      lastLine: this.#lastLine,
      cutLines: this.#cutLines,
    };
  }

  #hear(line: string, isCut: boolean): void {
    this.#lastLine = shortened(line);
    if (isCut) {
      this.#cutLines++;
      this.#options.onCut(rawEvent(line));
    } else this.#options.onLine(line);
  }

  #complain(line: string): void {
    this.#complaints.push(shortened(line));
    if (this.#complaints.length > keptComplaints) this.#complaints.shift();
  }
}

const shortened = (line: string): string =>
  line.length > keptLength ? `${line.slice(0, keptLength)}…` : line;

const mostDenials = 100;

/** Hands events on to the host, and remembers what the result will have to say. */
export class HostReporter {
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
  report(event: AgentEvent): void {
    if (this.#isDone) return;
    const pricedEvent = event.type === 'usage' ? { ...event, ...priced(event, this.#price) } : event;
    this.#remember(pricedEvent);
    this.#host.onEvent(pricedEvent);
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

/** Resolves when the promise does, or when the time is up. */
export async function within(promise: Promise<unknown>, ms: number): Promise<void> {
  let timer: NodeJS.Timeout | undefined;
  const timeUp = new Promise<void>(resolve => {
    timer = setTimeout(resolve, ms);
  });
  await Promise.race([promise, timeUp]);
  clearTimeout(timer);
}

interface AgentShutdown {
  readonly running: RunningProcess;
  /** Says so in the agent's own words; `false` if there are none. */
  readonly interrupt: () => boolean;
  /** Resolves when the agent has said that it stopped. */
  readonly reported: Promise<void>;
  readonly graceMs: number;
}

/**
 * Ends an agent with all that it started: by its own protocol, so that it can end its tools and keep its session;
 * then by SIGINT, SIGTERM and SIGKILL. Takes little more than the grace period.
 */
export async function endAgent({
  running,
  interrupt,
  reported,
  graceMs,
}: AgentShutdown): Promise<EndedTrees> {
  const shareMs = graceMs / 4;
  if (interrupt()) {
    await within(Promise.race([reported, running.ended]), shareMs);
    running.endInput();
    await within(running.ended, shareMs);
  }
  if (sendInterrupt(running)) await within(running.ended, shareMs);
  return running.stop({ graceMs: shareMs });
}

function sendInterrupt({ identity }: RunningProcess): boolean {
  if (!identity || !isSameProcess(identity)) return false;
  try {
    return process.kill(identity.pid, 'SIGINT');
  } catch {
    return false;
  }
}
