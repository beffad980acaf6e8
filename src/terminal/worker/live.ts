import type { HistoryEvent } from '../../core/index.ts';
import type { Observation } from '../../engine/index.ts';
import type { WorkerNews } from '../../worker/index.ts';
import { glyphsFor } from '../glyphs.ts';
import { type EveryInterval, everyInterval, importScreen } from '../run/live.ts';
import type { Screen } from '../screen.ts';
import { painter } from '../text.ts';
import { WorkerLane, workersFrame } from './frame.ts';
import {
  namedLines,
  newsLines,
  observationLines,
  type WorkerLine,
  type WorkersReporter,
} from './reporter.ts';

export interface LiveWorkersOptions {
  /** Terminal to draw on. */
  readonly stdout: NodeJS.WriteStream;
  /** Number of workers. */
  readonly workers: number;
  readonly branch: string;
  readonly color: boolean;
  readonly unicode?: boolean | undefined;
  /** Milliseconds since the epoch. */
  readonly now: () => number;
  /** Whether the workers have been asked to stop. */
  readonly isStopping: () => boolean;
  /** Source of ticks. Defaults to a timer. */
  readonly every?: EveryInterval | undefined;
}

const frameMs = 100;

/**
 * Live view of workers: one row per worker, redrawn in place, below log lines that stay. A line stays if it is worth
 * reading later: landed, parked and abandoned tasks, and why a worker sleeps.
 */
export async function createLiveWorkersReporter(options: LiveWorkersOptions): Promise<WorkersReporter> {
  const { openScreen } = await importScreen();
  return new LiveWorkersReporter(options, openScreen(options.stdout));
}

class LiveWorkersReporter implements WorkersReporter {
  readonly #options: LiveWorkersOptions;
  readonly #screen: Screen;
  readonly #lanes: readonly WorkerLane[];
  readonly #notices: string[] = [];
  /** Problems of tasks and notices that have been printed, each of which is printed once. */
  readonly #reported = new Set<string>();
  readonly #lastSaid: (string | undefined)[] = [];
  readonly #redraw = () => this.#draw();
  readonly #stop: () => void;
  #tick = 0;

  constructor(options: LiveWorkersOptions, screen: Screen) {
    this.#options = options;
    this.#screen = screen;
    this.#lanes = Array.from({ length: options.workers }, () => new WorkerLane(options.now()));
    options.stdout.on('resize', this.#redraw);
    this.#stop = (options.every ?? everyInterval)(frameMs, () => {
      this.#tick++;
      this.#draw();
    });
  }

  observe(worker: number, observation: Observation): void {
    this.#lanes[worker]?.observe(observation);
    const staying =
      observation.kind === 'events'
        ? { ...observation, events: observation.events.filter(stays) }
        : observation;
    if (staying.kind === 'events') this.#say(worker, observationLines(staying));
    else if (staying.kind === 'notice')
      this.#say(worker, this.#unreported(observationLines(staying), `${worker}:`));
  }

  report(worker: number, news: WorkerNews): void {
    this.#lanes[worker]?.report(news, this.#options.now());
    if (news.kind === 'enlisted' || news.kind === 'woke' || news.kind === 'nothing') return;
    const lines = newsLines(news, this.#options);
    if (news.kind === 'problems') this.#say(worker, this.#unreported(lines, ''));
    // A worker that wakes up and finds nothing would only repeat why it sleeps.
    else if (news.kind !== 'sleeps' || this.#lastSaid[worker] !== lines[0]?.text) this.#say(worker, lines);
  }

  async close(): Promise<void> {
    this.#stop();
    this.#options.stdout.off('resize', this.#redraw);
    this.#draw();
    await this.#screen.close();
  }

  #unreported(lines: readonly WorkerLine[], who: string): readonly WorkerLine[] {
    const fresh = lines.filter(({ text }) => !this.#reported.has(`${who}${text}`));
    for (const { text } of fresh) this.#reported.add(`${who}${text}`);
    return fresh;
  }

  #say(worker: number, lines: readonly WorkerLine[]): void {
    const { now, color } = this.#options;
    const names = this.#lanes.map(({ name }) => name);
    for (const line of lines) {
      this.#notices.push(...namedLines(line, { names, worker, at: now(), paint: painter(color) }));
      this.#lastSaid[worker] = line.text;
    }
  }

  #draw(): void {
    const { stdout, branch, now, color, unicode, isStopping } = this.#options;
    const lines = workersFrame(this.#lanes, {
      branch,
      columns: stdout.columns || 80,
      rows: stdout.rows || 24,
      now: now(),
      tick: this.#tick,
      glyphs: glyphsFor(unicode),
      paint: painter(color),
      isStopping: isStopping(),
    });
    this.#screen.show({ lines, notices: this.#notices });
  }
}

/** Whether the line of an event stays in the log. */
function stays(event: HistoryEvent): boolean {
  switch (event.type) {
    case 'landing.ended':
    case 'landing.delivered':
    case 'landing.parked':
    case 'step.paused':
      return true;
    case 'session.ended':
      return (event.data.denials ?? []).length > 0;
    // Other failures are reported together with the outcome of the task.
    case 'step.failed':
      return event.step === 'dispatch';
    default:
      return false;
  }
}
