import type { AgentEvent } from '../../agents/index.ts';
import { type EventType, type HistoryEvent, type JsonObject, toEpochMs } from '../../core/index.ts';
import type { Observation, RunResult } from '../../engine/index.ts';
import { definitionPath, unitOf, unitOfEvent } from '../../engine/state/index.ts';
import {
  type AgentUnit,
  agentAction,
  furtherLines,
  RunView,
  type StepUnit,
  safeLine,
  safeText,
} from '../../view/index.ts';
import type { StepModel, WorkflowModel } from '../../workflow/index.ts';
import { eventLine } from '../events.ts';
import { statusColour } from '../glyphs.ts';
import { type StepAtPath, stepsOf } from '../graph.ts';
import { clockTime, displayWidth, type Paint, painter } from '../text.ts';

/** Shows a run while it is observed. `observe` never throws. */
export interface RunReporter {
  observe(observation: Observation): void;
  /** Shows what is left and restores the terminal. `undefined`: the run has no result. */
  close(result: RunResult | undefined): Promise<void>;
}

export interface PlainReporterOptions {
  readonly write: (text: string) => void;
  readonly color: boolean;
  readonly workflow: WorkflowModel;
  /** Milliseconds since the epoch. */
  readonly now: () => number;
  /** Whether to print every output line of steps and every action of agents. */
  readonly verbose?: boolean | undefined;
  /** Events from before the run was resumed. They are applied but not printed. */
  readonly history?: readonly HistoryEvent[] | undefined;
  /** Suffix of suggested commands, such as ` --state-dir x`. */
  readonly commandSuffix?: string | undefined;
}

const widestColumn = 32;
const shownLines = 10;

/** Events after which the earlier output of a step is no longer relevant. */
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

/** Log for pipes and CI, with lines such as `12:01:03 build  ok 1.2s`. */
export function createPlainReporter(options: PlainReporterOptions): RunReporter {
  return new PlainReporter(options);
}

class PlainReporter implements RunReporter {
  readonly #options: PlainReporterOptions;
  readonly #paint: Paint;
  readonly #steps: ReadonlyMap<string, StepAtPath>;
  readonly #view: RunView;
  readonly #width: number;
  /** Last output lines of active steps, printed if one fails. */
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
    if (result?.status !== 'waiting') return;
    const names = [...new Set(result.waiting.map(({ step }) => safeLine(step)))].join(', ');
    this.#write(this.#options.now(), undefined, this.#paint('yellow', `waiting for ${names}`));
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

  /** Last output lines of a failed step. The message of a shell failure quotes them; other failures do not. */
  #tailOf(step: string, message: string): readonly string[] {
    const quoted = furtherLines(message);
    if (this.#options.verbose) return this.#tails.has(step) ? [] : quoted;
    return quoted.length > 0 ? quoted : (this.#tails.get(step) ?? []);
  }

  #takeOutput(unit: StepUnit, line: string): void {
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
