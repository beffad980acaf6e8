import type { AgentEvent } from '../../agents/session.ts';
import type { EventType, HistoryEvent } from '../../core/events.ts';
import type { JsonObject } from '../../core/json.ts';
import { toEpochMs } from '../../core/time.ts';
import type { Observation } from '../../engine/environment.ts';
import type { RunResult } from '../../engine/run/result.ts';
import { definitionPath, unitOf, unitOfEvent } from '../../engine/state/graph.ts';
import { type AgentUnit, RunView, type Unit } from '../../view/run-view.ts';
import { furtherLines, safeLine, safeText } from '../../view/safe-text.ts';
import { agentAction } from '../../view/step-progress.ts';
import type { StepModel, WorkflowModel } from '../../workflow/model.ts';
import { eventLine } from '../events.ts';
import { statusColour } from '../glyphs.ts';
import { type PlacedStep, stepsOf } from '../graph.ts';
import type { Reporter } from '../index.ts';
import { clockTime, displayWidth, type Paint, painter } from '../text.ts';

export interface PlainReporterOptions {
  readonly write: (text: string) => void;
  readonly color: boolean;
  readonly workflow: WorkflowModel;
  /** Milliseconds since the epoch. */
  readonly now: () => number;
  /** Show every line that shell steps write. */
  readonly verbose?: boolean | undefined;
  /** What happened before the run was resumed: known, but not shown. */
  readonly history?: readonly HistoryEvent[] | undefined;
  /** What commands to type end with. */
  readonly commandSuffix?: string | undefined;
}

const widestColumn = 32;
const shownLines = 10;

/** After these, what a step printed before says nothing of how it goes on. */
const endsOutput: ReadonlySet<EventType> = new Set<EventType>([
  'step.started',
  'step.completed',
  'step.failed',
  'step.cancelled',
  'step.retrying',
  'step.interrupted',
  'step.suspended',
  'step.resumed',
  'approval.given',
]);

/** A log for pipes and CI: one line for each thing that happened, `12:01:03 build  ok 1.2s`. */
export function createPlainReporter(options: PlainReporterOptions): Reporter {
  return new PlainReporter(options);
}

class PlainReporter implements Reporter {
  readonly #options: PlainReporterOptions;
  readonly #paint: Paint;
  readonly #steps: ReadonlyMap<string, PlacedStep>;
  readonly #view: RunView;
  readonly #width: number;
  /** The last lines of steps under way, for when one fails. */
  readonly #tails = new Map<string, string[]>();

  constructor(options: PlainReporterOptions) {
    const steps = stepsOf(options.workflow);
    this.#options = options;
    this.#paint = painter(options.color);
    this.#steps = new Map(steps.map(placed => [placed.path, placed]));
    this.#view = new RunView([...this.#steps.keys()]);
    const units = steps.map(({ path, step }) => (step.fanOut ? unitOf(path, 0) : path));
    const names = [options.workflow.name, ...units].map(name => displayWidth(safeLine(name)));
    this.#width = names.reduce(
      (widest, width) => (width <= widestColumn ? Math.max(widest, width) : widest),
      0,
    );
    for (const event of options.history ?? []) this.#view.apply(event);
  }

  observe(observation: Observation): void {
    switch (observation.kind) {
      case 'events':
        for (const event of observation.events) this.#view.apply(event);
        for (const event of observation.events) this.#showEvent(event);
        break;
      case 'output':
        this.#takeOutput(observation, observation.line);
        break;
      case 'log':
        this.#write(
          this.#options.now(),
          unitOf(observation.step, observation.worker),
          `log: ${logText(observation)}`,
        );
        break;
      case 'agent':
        this.#takeAction(observation, observation.event);
        break;
      case 'notice':
        this.#write(this.#options.now(), undefined, `note: ${safeLine(observation.message)}`);
        break;
    }
  }

  async close(result: RunResult | undefined): Promise<void> {
    if (result?.status !== 'suspended') return;
    const names = [...new Set(result.waiting.map(({ step }) => safeLine(step)))].join(', ');
    this.#write(this.#options.now(), undefined, this.#paint('yellow', `suspended: waits for ${names}`));
  }

  #showEvent(event: HistoryEvent): void {
    const line = eventLine(event, {
      view: this.#view,
      attemptLimit: path => this.#model(path)?.retry?.attempts,
      isOptional: path => this.#model(path)?.optional ?? false,
      isGate: path => this.#model(path)?.body.kind === 'approve',
      commandSuffix: this.#options.commandSuffix,
    });
    if (!line) return;
    const at = toEpochMs(event.at);
    this.#write(at, line.step, this.#paint(statusColour(line.status), line.text));
    const unit = unitOfEvent(event);
    if (unit === undefined) return;
    if (event.type === 'step.failed' || event.type === 'step.retrying') {
      for (const text of this.#tailOf(unit, event.data.error.message)) this.#writeOutput(at, unit, text);
    }
    if (endsOutput.has(event.type)) this.#tails.delete(unit);
  }

  #model(path: string): StepModel | undefined {
    return this.#steps.get(definitionPath(path))?.step;
  }

  /** The message of a shell failure quotes the end of the output; other failures do not. */
  #tailOf(step: string, message: string): readonly string[] {
    const quoted = furtherLines(message);
    if (this.#options.verbose) return this.#tails.has(step) ? [] : quoted;
    return quoted.length > 0 ? quoted : (this.#tails.get(step) ?? []);
  }

  #takeOutput(unit: Unit, line: string): void {
    this.#view.output(unit, line);
    const name = unitOf(unit.step, unit.worker);
    const tail = this.#tails.get(name) ?? [];
    this.#tails.set(name, tail);
    tail.push(line);
    if (tail.length > shownLines) tail.shift();
    if (this.#options.verbose) this.#writeOutput(this.#options.now(), name, line);
  }

  #takeAction(unit: AgentUnit, event: AgentEvent): void {
    this.#view.agent(unit, event);
    const action = this.#options.verbose ? agentAction(event, unit.folder) : undefined;
    if (action !== undefined) this.#writeOutput(this.#options.now(), unitOf(unit.step, unit.worker), action);
  }

  #writeOutput(at: number, step: string, line: string): void {
    this.#write(at, step, `${this.#paint('dim', '|')} ${safeText(line).replaceAll('\n', ' ').trimEnd()}`);
  }

  #write(at: number, step: string | undefined, text: string): void {
    const name = safeLine(step ?? this.#options.workflow.name);
    const column = name + ' '.repeat(Math.max(0, this.#width - displayWidth(name)));
    const line = `${this.#paint('dim', clockTime(at))} ${this.#paint(step === undefined ? 'bold' : undefined, column)}  ${text}`;
    this.#options.write(`${line.trimEnd()}\n`);
  }
}

function logText({
  message,
  fields,
}: {
  readonly message: string;
  readonly fields?: JsonObject | undefined;
}): string {
  const pairs = Object.entries(fields ?? {}).map(([key, value]) => `${key}=${JSON.stringify(value)}`);
  return safeLine([message, ...pairs].join(' '));
}
