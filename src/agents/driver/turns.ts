import type { OutputStream } from '../../process/output.ts';
import { rawEvent } from '../json-line.ts';
import type { AgentEvent } from '../session.ts';

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
export class Listener {
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
