import type { HistoryEvent } from '../../core/index.ts';
import type { Observation } from '../../engine/index.ts';
import { definitionPath } from '../../engine/state/index.ts';
import { RunView, safeLine } from '../../view/index.ts';
import type { WorkflowModel } from '../../workflow/index.ts';
import { glyphsFor } from '../glyphs.ts';
import { stepsOf } from '../graph.ts';
import type { Screen } from '../screen.ts';
import { painter } from '../text.ts';
import { frameLines } from './live-frame.ts';
import type { RunReporter } from './plain.ts';

/**
 * Imports the screen on demand, because Ink is slow to load. React reads NODE_ENV while it loads, and its development build
 * keeps a measurement of every frame, so the production build is forced.
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

/** Calls `tick` at an interval until the returned function is called. Does not keep the process alive. */
export type EveryInterval = (ms: number, tick: () => void) => () => void;

export const everyInterval: EveryInterval = (ms, tick) => {
  const timer = setInterval(tick, ms);
  timer.unref();
  return () => clearInterval(timer);
};

export interface LiveReporterOptions {
  /** Terminal to draw on. */
  readonly stdout: NodeJS.WriteStream;
  readonly workflow: WorkflowModel;
  readonly color: boolean;
  /** Milliseconds since the epoch. */
  readonly now: () => number;
  readonly unicode?: boolean | undefined;
  /** Events from before the run was resumed. */
  readonly history?: readonly HistoryEvent[] | undefined;
  /** Source of ticks. Defaults to a timer. */
  readonly every?: EveryInterval | undefined;
}

const frameMs = 100;

/** Live view of a run, redrawn in place at most ten times a second. `close` clears it, so that a summary can follow. */
export async function createLiveReporter(options: LiveReporterOptions): Promise<RunReporter> {
  const { openScreen } = await importScreen();
  return new LiveReporter(options, openScreen(options.stdout));
}

class LiveReporter implements RunReporter {
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
