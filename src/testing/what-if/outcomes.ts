import {
  canonicalJson,
  type ErrorData,
  type HistoryEvent,
  type Json,
  type NewEvent,
} from '../../core/index.ts';
import type { Tracer } from '../../effects/index.ts';
import { type RecordedEntry, topLane } from '../../effects/recording/index.ts';
import { canonicalOrder, effectiveHistory } from '../../engine/history/index.ts';
import { withoutVolatile } from '../../engine/index.ts';
import { unitOfEvent } from '../../engine/state/index.ts';
import type { Batch, NewRun } from '../../store/index.ts';

/** How a step, a copy of a step or a run ended, as far as it is known. */
export interface Outcome {
  /** `unfinished`: it started, and the recording does not show how it would have ended. */
  readonly status: 'completed' | 'failed' | 'cancelled' | 'skipped' | 'unfinished';
  /** Number of the attempt, for a step. */
  readonly attempt?: number | undefined;
  readonly output?: Json | undefined;
  readonly error?: ErrorData | undefined;
  /** Reason for a skip or a cancellation. */
  readonly reason?: string | undefined;
}

/** A step, or copy of a step (`fix:1`), whose outcome changed. `undefined` means that it did not start. */
export interface Change {
  readonly step: string;
  readonly before: Outcome | undefined;
  readonly after: Outcome | undefined;
}

interface Outcomes {
  readonly run: Outcome;
  /** Outcomes by step, in canonical order. */
  readonly steps: ReadonlyMap<string, Outcome>;
}

/** Returns the outcomes of the effective history, without times, costs and paths. */
export function outcomesOf(history: readonly HistoryEvent[]): Outcomes {
  const steps = new Map<string, Outcome>();
  let run: Outcome = { status: 'unfinished' };
  for (const event of canonicalOrder(effectiveHistory(history).events)) {
    const unit = unitOfEvent(event);
    if (unit === undefined) run = runOutcome(event) ?? run;
    else {
      const outcome = stepOutcome(event);
      if (outcome) steps.set(unit, outcome);
    }
  }
  return { run, steps };
}

function runOutcome(event: HistoryEvent): Outcome | undefined {
  switch (event.type) {
    case 'run.completed':
      return { status: 'completed', output: withoutVolatile(event.data.output) };
    case 'run.failed':
      return { status: 'failed', error: event.data.error };
    case 'run.cancelled':
      return { status: 'cancelled', reason: event.data.reason };
    default:
      return undefined;
  }
}

function stepOutcome(event: HistoryEvent): Outcome | undefined {
  const { attempt } = event;
  switch (event.type) {
    case 'step.started':
      return { status: 'unfinished', attempt };
    case 'step.completed':
      return { status: 'completed', attempt, output: withoutVolatile(event.data.output) };
    case 'step.failed':
      return { status: 'failed', attempt, error: event.data.error };
    case 'step.cancelled':
      return { status: 'cancelled', attempt, reason: event.data.reason };
    case 'step.skipped': {
      const { reason, because } = event.data;
      return { status: 'skipped', reason: because === undefined ? reason : `${reason} of ${because}` };
    }
    default:
      return undefined;
  }
}

/** Returns the steps whose outcomes differ, in order: those of `before` first. */
export function changesOf(before: Outcomes, after: Outcomes): readonly Change[] {
  const units = new Set([...before.steps.keys(), ...after.steps.keys()]);
  const changes = [...units].map(step => ({
    step,
    before: before.steps.get(step),
    after: after.steps.get(step),
  }));
  return changes.filter(change => !isSame(change.before, change.after));
}

function isSame(a: Outcome | undefined, b: Outcome | undefined): boolean {
  if (!a || !b) return a === b;
  return comparable(a) === comparable(b);
}

/** Leaves out the stack and the hint of an error, which contain paths. */
const comparable = ({ status, attempt = 0, output = null, error, reason = '' }: Outcome): string =>
  canonicalJson({ status, attempt, output, reason, error: error ? [error.code, error.message] : null });

/** Describes an outcome in one line. */
function outcomeText(outcome: Outcome | undefined): string {
  if (!outcome) return 'did not start';
  const { status, attempt = 1, output, error, reason } = outcome;
  const tried = attempt > 1 ? ` (attempt ${attempt})` : '';
  switch (status) {
    case 'completed':
      return `completed${tried} ${JSON.stringify(output)}`;
    case 'failed':
      return `failed${tried}: ${error?.message.split('\n')[0] ?? ''} [${error?.code ?? ''}]`;
    case 'cancelled':
      return `cancelled${tried}: ${reason ?? ''}`;
    case 'skipped':
      return `skipped: ${reason ?? ''}`;
    case 'unfinished':
      return `started${tried}; its end is not in the recording`;
  }
}

/** Lists the steps whose outcomes differ, and the run if its outcome differs, with both outcomes. */
export function diffText(title: string, before: Outcomes, after: Outcomes): string {
  const lines = changesOf(before, after).map(({ step, ...sides }) => ({ name: step, ...sides }));
  const ended = isSame(before.run, after.run)
    ? []
    : [{ name: 'the run', before: before.run, after: after.run }];
  const all = [...lines, ...ended];
  if (all.length === 0) return `${title}: no difference\n`;
  const width = Math.max(...all.map(({ name }) => name.length));
  const texts = all.flatMap(({ name, ...sides }) => [
    `- ${name.padEnd(width)}  ${outcomeText(sides.before)}`,
    `+ ${name.padEnd(width)}  ${outcomeText(sides.after)}`,
  ]);
  return [title, ...texts, ''].join('\n');
}

/** History of one run of a case. */
export interface CaseHistory {
  readonly runId: string;
  /** Names of the commands of the case that executed the run. */
  readonly steps: readonly string[];
  readonly events: readonly HistoryEvent[];
}

/** Assembles the histories of all runs of a case from writes to the store. */
export class Histories {
  readonly #runs = new Map<string, { readonly steps: Set<string>; readonly events: HistoryEvent[] }>();

  /** Histories of all runs, in the order in which they started. */
  all(): readonly CaseHistory[] {
    return [...this.#runs].map(([runId, { steps, events }]) => ({
      runId,
      steps: [...steps],
      events: [...events],
    }));
  }

  /** Adds the events of a store write and returns them. */
  take(lane: string, effect: string, args: unknown): readonly NewEvent[] {
    if (effect === 'store.create') return this.#add(lane, args as NewRun, 0);
    if (effect !== 'store.append') return [];
    const batch = args as Batch;
    return this.#add(lane, batch, batch.expectedSeq);
  }

  #add(lane: string, { runId, at, events }: Pick<Batch, 'runId' | 'at' | 'events'>, last: number) {
    const run = this.#runs.get(runId) ?? { steps: new Set(), events: [] };
    this.#runs.set(runId, run);
    run.steps.add(topLane(lane));
    for (const [index, event] of events.entries())
      run.events[last + index] = { ...event, seq: last + index + 1, runId, at } as HistoryEvent;
    return events;
  }
}

/** Returns the histories in a recording. */
export function recordedHistories(entries: readonly RecordedEntry[]): readonly CaseHistory[] {
  const histories = new Histories();
  for (const { lane, op, args, outcome } of entries)
    if (outcome?.kind === 'ok') histories.take(lane, op, args);
  return histories.all();
}

/** Collects histories during a replay. Calls `onStarted` with the command of the case and the unit that starts. */
export const historyTracer = (
  histories: Histories,
  normalise: (value: unknown) => unknown,
  onStarted: (step: string, unit: string) => void,
): Tracer => ({
  granted: () => {},
  settled: ({ effect, args, lane }, _place, outcome) => {
    if (outcome.kind !== 'ok' || !/^store\.(create|append)$/.test(effect.name)) return;
    for (const event of histories.take(lane.name, effect.name, normalise(args))) {
      const unit = unitOfEvent(event);
      if (event.type === 'step.started' && unit !== undefined) onStarted(topLane(lane.name), unit);
    }
  },
});
