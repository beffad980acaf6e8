import {
  type EndedTrees,
  isSameProcess,
  type OutputStream,
  type RunningProcess,
} from '../../process/index.ts';
import {
  type AgentEvent,
  addUsage,
  cleanReport,
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

interface PendingQuestion {
  readonly question: HostQuestion;
  readonly onAnswer: (answer: HostAnswer) => void;
}

/** Queue of the questions of a session, followed by its end. */
export class TurnQueue {
  readonly #pending: PendingQuestion[] = [];
  #handedOut: PendingQuestion | undefined;
  #end: TurnEnd | undefined;
  #wake = () => {};
  readonly #ofEnd: Pick<Extract<TurnEnd, { kind: 'end' }>, 'nextKey'>;

  constructor(ofEnd: Pick<Extract<TurnEnd, { kind: 'end' }>, 'nextKey'> = {}) {
    this.#ofEnd = ofEnd;
  }

  get isOver(): boolean {
    return this.#end !== undefined;
  }

  ask(question: HostQuestion, onAnswer: (answer: HostAnswer) => void): void {
    this.#pending.push({ question, onAnswer });
    this.#wake();
  }

  /** Removes a question whose answer the agent no longer expects. */
  withdraw(id: string): void {
    const isThis = ({ question }: PendingQuestion) => question.kind === 'permission' && question.id === id;
    const index = this.#pending.findIndex(isThis);
    if (index >= 0) this.#pending.splice(index, 1);
    if (this.#handedOut && isThis(this.#handedOut)) this.#handedOut = undefined;
  }

  /** Ends the session. Later calls have no effect. */
  end(result: SessionResult): void {
    this.#end ??= { kind: 'end', result, ...this.#ofEnd };
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

/** Maximum length of a line. Longer lines are cut, because they could exhaust memory. */
export const longestLine = 8 * 1024 * 1024;

const keptErrorLines = 15;
const keptLength = 500;

interface ListenerOptions {
  readonly onLine: (line: string) => void;
  /** Called with the start of a line that is too long. */
  readonly onCut: (start: string) => void;
  readonly onStall: () => void;
  readonly stallMs: number | undefined;
}

/** Forwards the output of an agent line by line, keeps the last lines, and detects stalls. */
export class OutputListener {
  readonly #options: ListenerOptions;
  readonly #errorLines: string[] = [];
  #timer: NodeJS.Timeout | undefined;
  #silenceTimer: NodeJS.Timeout | undefined;
  #lastLine: string | undefined;
  #cutLines = 0;

  constructor(options: ListenerOptions) {
    this.#options = options;
  }

  readonly take = (stream: OutputStream, line: string, isCut: boolean): void => {
    this.#timer?.refresh();
    this.#silenceTimer?.refresh();
    if (stream === 'stderr') this.#keepErrorLine(line);
    else this.#takeLine(line, isCut);
  };

  /** Starts the stall timer, which every line of output resets. */
  startStallTimer(): void {
    const { stallMs, onStall } = this.#options;
    if (stallMs === undefined) return;
    this.stopStallTimer();
    this.#timer = setTimeout(onStall, stallMs);
  }

  stopStallTimer(): void {
    clearTimeout(this.#timer);
    this.#timer = undefined;
  }

  /** Calls `onSilence` when the agent prints nothing for that long. Replaces an earlier timer. */
  startSilenceTimer(silenceMs: number, onSilence: () => void): void {
    this.stopSilenceTimer();
    this.#silenceTimer = setTimeout(onSilence, silenceMs);
  }

  stopSilenceTimer(): void {
    clearTimeout(this.#silenceTimer);
    this.#silenceTimer = undefined;
  }

  lastOutput() {
    return {
      stderr: this.#errorLines.join('\n').trim(),
      lastLine: this.#lastLine,
      cutLines: this.#cutLines,
    };
  }

  #takeLine(line: string, isCut: boolean): void {
    this.#lastLine = shortened(line);
    if (isCut) {
      this.#cutLines++;
      this.#options.onCut(line);
    } else this.#options.onLine(line);
  }

  #keepErrorLine(line: string): void {
    this.#errorLines.push(shortened(line));
    if (this.#errorLines.length > keptErrorLines) this.#errorLines.shift();
  }
}

const shortened = (line: string): string =>
  line.length > keptLength ? `${line.slice(0, keptLength)}…` : line;

const mostDenials = 100;

/** Forwards events to the host and collects the id, usage and denials for the result. */
export class HostReporter {
  readonly #host: SessionHost;
  readonly #price: SessionRequest['agent']['price'];
  #sessionId: string | undefined;
  #usage: Usage = noUsage;
  #isDone = false;
  readonly #denials: Denial[] = [];

  constructor(request: SessionRequest, host: SessionHost) {
    this.#host = host;
    // Claude Code reports its cost with the result, so tokens that precede it must not be priced as well.
    this.#price = request.agent.kind === 'claude' ? undefined : request.agent.price;
  }

  /** Reports an event. Events after `done` are dropped. */
  report(event: AgentEvent): void {
    if (this.#isDone) return;
    const clean = this.#clean(event);
    this.#remember(clean);
    this.#host.onEvent(clean);
  }

  /** Agents may report anything. An event that leaves here fits the history. */
  #clean(event: AgentEvent): AgentEvent {
    if (event.type === 'usage')
      return { type: 'usage', ...priced(cleanReport(event, this.#usage), this.#price) };
    return event.type === 'permission' && event.tool === '' ? { ...event, tool: 'unnamed tool' } : event;
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

/** Resolves when the promise settles or the time is up, whichever comes first. */
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
  /** Interrupts the turn through the protocol. Returns `false` if the protocol has no interrupt. */
  readonly interrupt: () => boolean;
  /** Stops the agent in this way instead of interrupting the turn. */
  readonly stopsBy?: 'closed-input' | 'SIGTERM' | undefined;
  /** Resolves when the agent confirms the interrupt. */
  readonly reported: Promise<void>;
  readonly graceMs: number;
}

/**
 * Stops an agent and all its processes: first through its protocol, so that it can stop its tools and save its session,
 * then with SIGINT, SIGTERM and SIGKILL. Takes little more than the grace period.
 */
export async function endAgent({
  running,
  interrupt,
  stopsBy,
  reported,
  graceMs,
}: AgentShutdown): Promise<EndedTrees> {
  const shareMs = graceMs / 4;
  if (stopsBy) {
    if (stopsBy === 'closed-input') running.endInput();
    else sendSignal(running, stopsBy);
    await within(running.ended, 2 * shareMs);
  } else if (interrupt()) {
    await within(Promise.race([reported, running.ended]), shareMs);
    running.endInput();
    await within(running.ended, shareMs);
  }
  if (!stopsBy && sendSignal(running, 'SIGINT')) await within(running.ended, shareMs);
  return running.stop({ graceMs: shareMs });
}

function sendSignal({ identity }: RunningProcess, signal: 'SIGINT' | 'SIGTERM'): boolean {
  if (!identity || !isSameProcess(identity)) return false;
  try {
    return process.kill(identity.pid, signal);
  } catch {
    return false;
  }
}
