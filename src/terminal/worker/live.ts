import type { HistoryEvent } from '../../core/events.ts';
import type { Observation } from '../../engine/environment.ts';
import type { WorkerNews } from '../../worker/contract.ts';
import { glyphsFor } from '../glyphs.ts';
import { type Every, everyInterval, importScreen } from '../run/live.ts';
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
  /** A terminal: where the view is drawn. */
  readonly stdout: NodeJS.WriteStream;
  /** How many workers there are going to be. */
  readonly workers: number;
  readonly branch: string;
  readonly color: boolean;
  readonly unicode?: boolean | undefined;
  /** Milliseconds since the epoch. */
  readonly now: () => number;
  /** Whether somebody has asked the workers to stop. */
  readonly isStopping: () => boolean;
  /** A timer by default. */
  readonly every?: Every | undefined;
}

const frameMs = 100;

/**
 * A row for each worker that changes in place, and above them a line that stays for everything that somebody may want to
 * read later: what landed, what was parked or given up, why a worker sleeps.
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
  /** What need not be said again: what is wrong with tasks, and what a worker said last or was told. */
  readonly #told = new Set<string>();
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
      this.#say(worker, this.#untold(observationLines(staying), `${worker}:`));
  }

  tell(worker: number, news: WorkerNews): void {
    this.#lanes[worker]?.tell(news, this.#options.now());
    if (news.kind === 'enlisted' || news.kind === 'woke' || news.kind === 'nothing') return;
    const lines = newsLines(news, this.#options);
    if (news.kind === 'problems') this.#say(worker, this.#untold(lines, ''));
    // Whoever is woken by what others do, and finds nothing again, has nothing new to say.
    else if (news.kind !== 'sleeps' || this.#lastSaid[worker] !== lines[0]?.text) this.#say(worker, lines);
  }

  async close(): Promise<void> {
    this.#stop();
    this.#options.stdout.off('resize', this.#redraw);
    this.#draw();
    await this.#screen.close();
  }

  #untold(lines: readonly WorkerLine[], who: string): readonly WorkerLine[] {
    const fresh = lines.filter(({ text }) => !this.#told.has(`${who}${text}`));
    for (const { text } of fresh) this.#told.add(`${who}${text}`);
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

/** Whether somebody may want to read of it later. */
function stays(event: HistoryEvent): boolean {
  switch (event.type) {
    case 'landing.ended':
    case 'landing.parked':
    case 'step.paused':
      return true;
    case 'session.ended':
      return (event.data.denials ?? []).length > 0;
    // What fails later is told with what becomes of the task.
    case 'step.failed':
      return event.step === 'dispatch';
    default:
      return false;
  }
}
