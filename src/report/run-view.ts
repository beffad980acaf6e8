import type { EventOf, HistoryEvent } from '../core/event.ts';
import { toEpochMs } from '../core/time.ts';
import type { StatusWord } from './glyphs.ts';
import { Overlap } from './overlap.ts';
import { StepProgress } from './step-progress.ts';

type RunEnd = EventOf<'run.completed'> | EventOf<'run.failed'> | EventOf<'run.cancelled'>;
type StepEvent = Extract<HistoryEvent, { type: `${'step' | 'timer' | 'approval'}.${string}` }>;

/**
 * What there is to show of a run, folded from its events in constant time for each; a resume that takes steps back
 * costs their number. It trusts the history: checking it is the engine's work.
 */
export class RunView {
  runId: string | undefined;
  workflow: string | undefined;
  forkedFrom: { readonly run: string; readonly step: string } | undefined;
  /** In the stable topological order. */
  steps: readonly StepProgress[] = [];
  /** Steps that run, wait or are to be tried again. */
  readonly active = new Set<StepProgress>();
  readonly failed = new Set<StepProgress>();
  /** In the order in which they ended; one that was started over stays in its old place too. */
  readonly endings: StepProgress[] = [];
  /** Without the steps that only hold the steps of a child workflow. */
  readonly counts: Record<StatusWord, number> = noCounts();
  /** Why the run as a whole is to end. */
  cancelling: string | undefined;
  end: RunEnd | undefined;
  resumes = 0;
  /** How much of the work was done at the same time. */
  readonly overlap = new Overlap();

  readonly #byPath = new Map<string, StepProgress>();
  #lastAt: number | undefined;
  #lifeStartedAt: number | undefined;
  #startedAt: number | undefined;
  #earlierLivesMs = 0;

  /** `steps`: paths that are known before the first event. */
  constructor(steps: readonly string[] = []) {
    this.#setSteps(steps);
  }

  step(path: string): StepProgress | undefined {
    return this.#byPath.get(path);
  }

  /** How many steps there are, counted like `counts`. */
  get total(): number {
    let total = 0;
    for (const count of Object.values(this.counts)) total += count;
    return total;
  }

  /** Time during which somebody worked on the run: up to its last event, or to `now` while it goes on. */
  elapsedMs(now?: number): number {
    const until = this.end || now === undefined ? this.#lastAt : now;
    if (until === undefined || this.#lifeStartedAt === undefined) return this.#earlierLivesMs;
    return this.#earlierLivesMs + Math.max(0, until - this.#lifeStartedAt);
  }

  output(path: string, line: string): void {
    const step = this.#byPath.get(path);
    if (step) step.lastLine = line;
  }

  apply(event: HistoryEvent): void {
    const at = toEpochMs(event.at);
    // A gate starts and waits in the same breath; it was never at work.
    if (event.type !== 'approval.requested') this.overlap.take();
    switch (event.type) {
      case 'run.started':
        this.runId = event.runId;
        this.workflow = event.data.workflow;
        this.forkedFrom = event.data.forkedFrom;
        this.#startedAt = at;
        this.#lifeStartedAt = at;
        this.#setSteps(event.data.steps);
        break;
      case 'run.resumed':
        this.runId ??= event.runId;
        this.#resume(event, at);
        break;
      case 'run.completed':
      case 'run.failed':
      case 'run.cancelled':
        this.end = event;
        break;
      case 'cancel.requested':
        this.cancelling = event.data.reason;
        break;
      case 'signal.received':
        break;
      case 'step.started':
      case 'step.completed':
      case 'step.failed':
      case 'step.cancelled':
      case 'step.skipped':
      case 'step.retrying':
      case 'step.interrupted':
      case 'step.suspended':
      case 'step.resumed':
      case 'timer.set':
      case 'timer.fired':
      case 'approval.requested':
      case 'approval.given':
        if (event.step !== undefined) this.#applyToStep(this.#at(event.step), event, at);
        break;
    }
    this.#lastAt = at;
  }

  #applyToStep(step: StepProgress, event: StepEvent, at: number): void {
    switch (event.type) {
      case 'step.started':
        this.#start(step, event, at);
        break;
      case 'step.completed':
        step.reused = this.forkedFrom !== undefined && at === this.#startedAt;
        this.#finish(step, 'completed', at);
        // What a fork took over was not at work in this run; it all comes before anything else.
        if (step.reused) this.overlap.forget();
        break;
      case 'step.failed':
        step.error = event.data.error;
        this.#finish(step, 'failed', at);
        break;
      case 'step.cancelled':
        step.reason = event.data.reason;
        this.#finish(step, 'cancelled', at);
        break;
      case 'step.skipped':
        step.skipped = event.data;
        this.#finish(step, 'skipped', at);
        break;
      case 'step.retrying':
        step.error = event.data.error;
        step.retryAt = at + event.data.delayMs;
        this.#setStatus(step, 'retrying', at);
        break;
      case 'step.interrupted':
        this.#startOver(step, at);
        step.interrupted = true;
        break;
      case 'step.suspended':
        if (event.data.on === 'signal' && event.data.signal !== undefined) {
          step.waits.push({ on: 'signal', signal: event.data.signal });
        }
        this.#setStatus(step, 'waiting', at);
        break;
      case 'step.resumed':
        step.waits = [];
        this.#setStatus(step, 'running', at);
        break;
      case 'timer.set':
        if (typeof event.data.timer === 'number') {
          step.waits.push({ on: 'timer', until: at + event.data.ms });
        }
        break;
      case 'timer.fired':
        break;
      case 'approval.requested':
        step.waits = [{ on: 'approval', ...event.data }];
        this.#setStatus(step, 'waiting', at);
        break;
      case 'approval.given':
        step.answer = event.data;
        break;
    }
  }

  #start(step: StepProgress, event: EventOf<'step.started'>, at: number): void {
    if (step.attempt > 0) for (const child of step.children) this.#startOverWithin(child, at);
    step.attempt = event.attempt ?? 1;
    step.startedAt ??= at;
    step.retryAt = undefined;
    step.interrupted = false;
    step.waits = [];
    step.lastLine = undefined;
    this.#setStatus(step, 'running', at);
  }

  #finish(step: StepProgress, status: StatusWord, at: number): void {
    step.endedAt = at;
    step.waits = [];
    step.retryAt = undefined;
    this.#setStatus(step, status, at);
    this.endings.push(step);
  }

  #resume({ data }: EventOf<'run.resumed'>, at: number): void {
    const diedAt = this.#lastAt ?? at;
    if (this.#lifeStartedAt !== undefined) this.#earlierLivesMs += diedAt - this.#lifeStartedAt;
    this.#lifeStartedAt = at;
    this.resumes++;
    this.end = undefined;
    this.cancelling = undefined;
    for (const step of this.active) {
      this.overlap.stop(step, diedAt);
      step.idleMs += at - diedAt;
    }
    if (data.steps) this.#setSteps(data.steps);
    if (data.invalidated) this.#invalidate(data.invalidated, at);
  }

  /** A step whose child workflow was taken back only in part goes on; the others start over. */
  #invalidate(paths: readonly string[], at: number): void {
    const invalidated = new Set(paths);
    const reopened = new Set<StepProgress>();
    for (const step of this.steps) {
      if (step.status === 'pending' || invalidated.has(step.path)) continue;
      for (let outer = step.parent; outer; outer = outer.parent) reopened.add(outer);
    }
    for (const path of paths) {
      const step = this.#byPath.get(path);
      if (!step) continue;
      const { startedAt } = step;
      this.#startOver(step, at);
      if (!reopened.has(step) || startedAt === undefined) continue;
      step.startedAt = startedAt;
      this.#setStatus(step, 'running', at);
    }
  }

  #startOverWithin(step: StepProgress, at: number): void {
    this.#startOver(step, at);
    for (const child of step.children) this.#startOverWithin(child, at);
  }

  #startOver(step: StepProgress, at: number): void {
    this.#setStatus(step, 'pending', at);
    step.startOver();
  }

  #setStatus(step: StepProgress, status: StatusWord, at: number): void {
    const before = step.status;
    step.status = status;
    if (step.children.length === 0) {
      this.counts[before]--;
      this.counts[status]++;
      if (before === 'running') this.overlap.stop(step, at);
      if (status === 'running') this.overlap.start(step, at);
    }
    if (step.isActive) this.active.add(step);
    else this.active.delete(step);
    if (status === 'failed') this.failed.add(step);
    else this.failed.delete(step);
  }

  #at(path: string): StepProgress {
    const known = this.#byPath.get(path);
    if (known) return known;
    this.#setSteps([...this.steps.map(step => step.path), path]);
    return this.#at(path);
  }

  #setSteps(paths: readonly string[]): void {
    const before = new Map(this.#byPath);
    this.#byPath.clear();
    for (const path of paths) this.#byPath.set(path, before.get(path) ?? new StepProgress(path));
    this.steps = [...this.#byPath.values()];
    for (const step of this.steps) step.children = [];
    this.steps.forEach((step, index) => {
      step.index = index;
      step.parent = this.#byPath.get(step.path.slice(0, Math.max(0, step.path.lastIndexOf('/'))));
      step.parent?.children.push(step);
    });
    for (const group of [this.active, this.failed]) {
      for (const step of group) if (!this.#byPath.has(step.path)) group.delete(step);
    }
    Object.assign(this.counts, noCounts());
    for (const step of this.steps) if (step.children.length === 0) this.counts[step.status]++;
  }
}

const noCounts = (): Record<StatusWord, number> => ({
  pending: 0,
  running: 0,
  waiting: 0,
  retrying: 0,
  completed: 0,
  failed: 0,
  cancelled: 0,
  skipped: 0,
});

/** The view that a history leads to. */
export function viewOf(history: readonly HistoryEvent[], steps: readonly string[] = []): RunView {
  const view = new RunView(steps);
  for (const event of history) view.apply(event);
  return view;
}
