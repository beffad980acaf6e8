import type { ErrorData } from '../../core/errors.ts';
import type { HistoryEvent, NewEvent } from '../../core/events.ts';
import { canonicalJson, type Json } from '../../core/json.ts';
import { type RecordedEntry, topLane } from '../../effects/recording/recording.ts';
import type { Tracer } from '../../effects/tracer.ts';
import { canonicalOrder } from '../../engine/history/digest.ts';
import { effectiveHistory } from '../../engine/history/effective.ts';
import { withoutVolatile } from '../../engine/run/result.ts';
import { unitOfEvent } from '../../engine/state/graph.ts';
import type { Batch, NewRun } from '../../store/port.ts';

/** How a step, a worker or a run ended, as far as it is known. */
export interface Outcome {
  /** `unfinished`: it began, and nobody knows how it would have ended. */
  readonly status: 'completed' | 'failed' | 'cancelled' | 'skipped' | 'unfinished';
  /** Of a step: which attempt it was. */
  readonly attempt?: number | undefined;
  readonly output?: Json | undefined;
  readonly error?: ErrorData | undefined;
  /** Why it was skipped or cancelled. */
  readonly reason?: string | undefined;
}

/** A step or worker (`fix:1`) that ended otherwise. Absent: it never came to it. */
export interface Change {
  readonly step: string;
  readonly before: Outcome | undefined;
  readonly after: Outcome | undefined;
}

interface Outcomes {
  readonly run: Outcome;
  /** In canonical order. */
  readonly steps: ReadonlyMap<string, Outcome>;
}

/** What still counts of a history, in the order in which it was written, without times, costs and places. */
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

/** Steps that ended otherwise, in the order of the one that came further. */
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

/** Not the stack and the hint of an error, which name files. */
const comparable = ({ status, attempt = 0, output = null, error, reason = '' }: Outcome): string =>
  canonicalJson({ status, attempt, output, reason, error: error ? [error.code, error.message] : null });

/** One line. */
function outcomeText(outcome: Outcome | undefined): string {
  if (!outcome) return 'never came to it';
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
      return `started${tried}, and nobody knows how it would have ended`;
  }
}

/** Which steps ended otherwise, what they gave before and after, and how the run ended. */
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

/** The history of one run of a case. */
export interface CaseHistory {
  readonly runId: string;
  /** The steps of the case that worked on it. */
  readonly steps: readonly string[];
  readonly events: readonly HistoryEvent[];
}

/** Puts the histories of all runs of a case together from what was written to the store. */
export class Histories {
  readonly #runs = new Map<string, { readonly steps: Set<string>; readonly events: HistoryEvent[] }>();

  /** In the order in which they began. */
  all(): readonly CaseHistory[] {
    return [...this.#runs].map(([runId, { steps, events }]) => ({
      runId,
      steps: [...steps],
      events: [...events],
    }));
  }

  /** What was written in the lane. */
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

/** As it was recorded. */
export function recordedHistories(entries: readonly RecordedEntry[]): readonly CaseHistory[] {
  const histories = new Histories();
  for (const { lane, op, args, outcome } of entries)
    if (outcome?.kind === 'ok') histories.take(lane, op, args);
  return histories.all();
}

/** Follows a play. `onStarted` is told of each unit that starts, and in which step of the case. */
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
