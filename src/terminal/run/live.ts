import type { HistoryEvent } from '../../core/events.ts';
import type { Observation } from '../../engine/environment.ts';
import { definitionPath } from '../../engine/state/graph.ts';
import { RunView } from '../../view/run-view.ts';
import { safeLine } from '../../view/safe-text.ts';
import type { WorkflowModel } from '../../workflow/model.ts';
import { glyphsFor } from '../glyphs.ts';
import { stepsOf } from '../graph.ts';
import type { Reporter } from '../index.ts';
import type { Screen } from '../screen.ts';
import { painter } from '../text.ts';
import { frameLines } from './live-frame.ts';

/**
 * Ink is slow to load, so only who wants a live view pays for it. React looks at NODE_ENV while it is loaded, and its
 * development build keeps a measurement of every frame for ever.
 */
export async function importScreen(): Promise<typeof import('../screen.ts')> {
  const { env } = process;
  const before = env['NODE_ENV'];
  env['NODE_ENV'] = 'production';
  try {
    return await import('../screen.ts');
  } finally {
    if (before === undefined) delete env['NODE_ENV'];
    else env['NODE_ENV'] = before;
  }
}

/** Calls `tick` again and again until what it gives back is called. Keeps no process alive. */
export type Every = (ms: number, tick: () => void) => () => void;

export const everyInterval: Every = (ms, tick) => {
  const timer = setInterval(tick, ms);
  timer.unref();
  return () => clearInterval(timer);
};

export interface LiveReporterOptions {
  /** A terminal: where the view is drawn. */
  readonly stdout: NodeJS.WriteStream;
  readonly workflow: WorkflowModel;
  readonly color: boolean;
  /** Milliseconds since the epoch. */
  readonly now: () => number;
  readonly unicode?: boolean | undefined;
  /** What happened before the run was resumed. */
  readonly history?: readonly HistoryEvent[] | undefined;
  /** A timer by default. */
  readonly every?: Every | undefined;
}

const frameMs = 100;

/**
 * A picture of the run that changes in place, drawn at most ten times a second. Closing it takes the picture away, so that
 * a summary can stand there instead.
 */
export async function createLiveReporter(options: LiveReporterOptions): Promise<Reporter> {
  const { openScreen } = await importScreen();
  return new LiveReporter(options, openScreen(options.stdout));
}

class LiveReporter implements Reporter {
  readonly #options: LiveReporterOptions;
  readonly #screen: Screen;
  readonly #view: RunView;
  readonly #notices: string[] = [];
  readonly #attempts: ReadonlyMap<string, number | undefined>;
  readonly #redraw = () => this.#draw();
  readonly #stop: () => void;
  #tick = 0;

  constructor(options: LiveReporterOptions, screen: Screen) {
    const steps = stepsOf(options.workflow);
    this.#options = options;
    this.#screen = screen;
    this.#attempts = new Map(steps.map(({ path, step }) => [path, step.retry?.attempts]));
    this.#view = new RunView(steps.map(({ path }) => path));
    for (const event of options.history ?? []) this.#view.apply(event);
    options.stdout.on('resize', this.#redraw);
    this.#stop = (options.every ?? everyInterval)(frameMs, () => {
      this.#tick++;
      this.#draw();
    });
  }

  observe(observation: Observation): void {
    switch (observation.kind) {
      case 'events':
        for (const event of observation.events) this.#view.apply(event);
        break;
      case 'output':
        this.#view.output(observation, observation.line);
        break;
      case 'log':
        this.#view.output(observation, observation.message);
        break;
      case 'agent':
        this.#view.agent(observation, observation.event);
        break;
      case 'notice':
        this.#notices.push(safeLine(observation.message));
        break;
    }
  }

  async close(): Promise<void> {
    this.#stop();
    this.#options.stdout.off('resize', this.#redraw);
    this.#draw();
    await this.#screen.close();
  }

  #draw(): void {
    const { stdout, workflow, now, color, unicode } = this.#options;
    const lines = frameLines(this.#view, {
      workflow: workflow.name,
      columns: stdout.columns || 80,
      rows: stdout.rows || 24,
      now: now(),
      tick: this.#tick,
      glyphs: glyphsFor(unicode),
      paint: painter(color),
      attemptLimit: path => this.#attempts.get(definitionPath(path)),
    });
    this.#screen.show({ lines, notices: this.#notices });
  }
}
