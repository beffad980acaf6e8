import type { HistoryEvent } from '../../core/events.ts';
import type { Observation } from '../../engine/environment.ts';
import { definitionPath } from '../../engine/state/graph.ts';
import { painter } from '../../report/paint.ts';
import type { Reporter } from '../../report/reporter.ts';
import { type Every, everyInterval, importScreen } from '../../report/screen-import.ts';
import { stepsOf } from '../../report/workflow-steps.ts';
import { RunView } from '../../view/run-view.ts';
import { safeLine } from '../../view/safe-text.ts';
import type { WorkflowModel } from '../../workflow/model.ts';
import { glyphsFor } from '../glyphs.ts';
import type { Screen } from '../screen.ts';
import { frameLines } from './live-frame.ts';

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
