import type { AgentEvent } from '../agents/index.ts';
import { type EventOf, type HistoryEvent, toEpochMs } from '../core/index.ts';
import { unitOf, unitOfEvent } from '../engine/state/index.ts';
import { type Spending, spentTogether } from './cost.ts';
import { type Overlap, type StatusWord, StepBoard } from './step-board.ts';
import type { StepProgress } from './step-progress.ts';

/** A step, or one copy of it. */
export interface StepUnit {
  readonly step: string;
  readonly worker?: number | undefined;
}

/** A unit with the workspace of its agent. */
export type AgentUnit = StepUnit & { readonly folder?: string | undefined };

type RunEnd = EventOf<'run.completed'> | EventOf<'run.failed'> | EventOf<'run.cancelled'>;
type RunEvent = Extract<HistoryEvent, { type: `run.${string}` | 'cancel.requested' | 'signal.received' }>;
type StepHistoryEvent = Exclude<HistoryEvent, RunEvent>;

const isOfRun = (event: HistoryEvent): event is RunEvent =>
  event.type.startsWith('run.') || event.type === 'cancel.requested' || event.type === 'signal.received';

/**
 * View of a run, folded from its events. Each event takes constant time, except a resume, which takes time linear in the
 * number of invalidated steps. The history is trusted, because the engine has checked it.
 */
export class RunView {
  runId: string | undefined;
  workflow: string | undefined;
  forkedFrom: { readonly run: string; readonly step: string } | undefined;
  /** Commit that workspaces start from. */
  base: EventOf<'run.started'>['data']['base'];
  /** Steps in the order in which they ended. A step that was restarted appears once per end. */
  readonly endings: StepProgress[] = [];
  /** Reason of a requested cancellation. */
  cancelling: string | undefined;
  /** Why the run was suspended, until it is resumed. */
  suspension: EventOf<'run.suspended'>['data'] | undefined;
  end: RunEnd | undefined;
  resumes = 0;
  readonly #board = new StepBoard();
  readonly #withSessions = new Set<StepProgress>();
  #lastAt: number | undefined;
  #lifeStartedAt: number | undefined;
  #startedAt: number | undefined;
  #earlierLivesMs = 0;

  /** `steps` are the paths that are known before the first event. */
  constructor(steps: readonly string[] = []) {
    this.#board.set(steps);
  }

  /** Steps in the stable topological order, each followed by its copies and its child steps. */
  get steps(): readonly StepProgress[] {
    return this.#board.tree.steps;
  }

  /** Steps that are running, waiting or retrying. */
  get active(): ReadonlySet<StepProgress> {
    return this.#board.active;
  }

  get failed(): ReadonlySet<StepProgress> {
    return this.#board.failed;
  }

  /** Number of steps by status. Steps with children are not counted. */
  get counts(): Readonly<Record<StatusWord, number>> {
    return this.#board.counts;
  }

  /** Concurrency of the run. */
  get overlap(): Overlap {
    return this.#board.overlap;
  }

  /** Finds a step by path: `fix`, `fix:1` for a copy, `fix:1/build` for a step inside a copy. */
  step(path: string): StepProgress | undefined {
    return this.#board.tree.get(path);
  }

  /** Spending of all agents of the run, including discarded attempts. */
  get spent(): Spending {
    return spentTogether([...this.#withSessions].map(({ work }) => work.spent));
  }

  /** Number of steps, counted like `counts`. */
  get total(): number {
    let total = 0;
    for (const count of Object.values(this.counts)) total += count;
    return total;
  }

  /** Time during which a process was running the run, up to its last event, or up to `now` if it has not ended. */
  elapsedMs(now?: number): number {
    const until = this.end || now === undefined ? this.#lastAt : now;
    if (until === undefined || this.#lifeStartedAt === undefined) return this.#earlierLivesMs;
    return this.#earlierLivesMs + Math.max(0, until - this.#lifeStartedAt);
  }

  output(unit: StepUnit, line: string): void {
    const step = this.#board.tree.get(unitOf(unit.step, unit.worker));
    if (step) step.lastLine = line;
  }

  agent({ step, worker, folder }: AgentUnit, event: AgentEvent): void {
    this.#board.tree.get(unitOf(step, worker))?.work.observe(event, folder);
  }

  apply(event: HistoryEvent): void {
    const at = toEpochMs(event.at);
    // An approval and a fan-out start and immediately wait, so they must not count as running.
    if (event.type !== 'approval.requested' && event.type !== 'fanout.expanded') this.overlap.take();
    const unit = unitOfEvent(event);
    if (isOfRun(event)) this.#applyToRun(event, at);
    else if (unit !== undefined) this.#applyToStep(this.#at(unit, at), event, at);
    this.#lastAt = at;
  }

  #applyToRun(event: RunEvent, at: number): void {
    switch (event.type) {
      case 'run.started':
        this.runId = event.runId;
        this.workflow = event.data.workflow;
        this.forkedFrom = event.data.forkedFrom;
        this.base = event.data.base;
        this.#startedAt = at;
        this.#lifeStartedAt = at;
        this.#board.set(event.data.steps);
        break;
      case 'run.resumed':
        this.runId ??= event.runId;
        this.#resume(event, at);
        break;
      case 'run.suspended':
        this.suspension = event.data;
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
    }
  }

  #applyToStep(step: StepProgress, event: StepHistoryEvent, at: number): void {
    switch (event.type) {
      case 'step.started':
        this.#start(step, event, at);
        break;
      case 'step.completed':
        step.work.artifacts = event.data.artifacts ?? [];
        step.reused = this.forkedFrom !== undefined && at === this.#startedAt;
        this.#finish(step, 'completed', at);
        // Steps reused by a fork did not run in this run. Their events precede all others.
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
        this.#board.setStatus(step, 'retrying', at);
        break;
      case 'step.interrupted':
        this.#startOver(step, at);
        step.interrupted = true;
        break;
      case 'step.suspended':
        if (event.data.on === 'signal' && event.data.signal !== undefined) {
          step.waits.push({ on: 'signal', signal: event.data.signal });
        }
        this.#board.setStatus(step, 'waiting', at);
        break;
      case 'step.resumed':
        this.#continue(step, at);
        break;
      case 'timer.set':
        if (typeof event.data.timer === 'number') {
          step.waits.push({ on: 'timer', until: at + event.data.ms });
        }
        break;
      case 'timer.fired':
        if (event.data.timer === 'pause') this.#continue(step, at);
        break;
      case 'step.paused':
        step.waits = [{ on: 'limit', until: at + event.data.delayMs, reason: event.data.reason }];
        this.#board.setStatus(step, 'waiting', at);
        break;
      case 'fanout.expanded':
        this.#expand(step, event, at);
        break;
      case 'session.started':
        if (step.waits.some(({ on }) => on === 'limit')) this.#continue(step, at);
        this.#withSessions.add(step);
        step.work.apply(event);
        break;
      case 'selection.made':
      case 'workspace.created':
      case 'workspace.saved':
      case 'session.named':
      case 'session.ended':
      case 'landing.started':
      case 'landing.ended':
      case 'landing.delivered':
      case 'landing.parked':
      case 'work.checked':
      case 'transition.taken':
        step.work.apply(event);
        break;
      case 'approval.requested':
        step.answer = undefined;
        step.waits = [{ on: 'approval', ...event.data }];
        this.#board.setStatus(step, 'waiting', at);
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
    step.work.begin();
    this.#board.setStatus(step, 'running', at);
  }

  #continue(step: StepProgress, at: number): void {
    step.waits = [];
    this.#board.setStatus(step, 'running', at);
  }

  /** Adds the copies of a step. From now on, they are running instead of the step itself. */
  #expand(step: StepProgress, { data }: EventOf<'fanout.expanded'>, at: number): void {
    step.fanOut = data;
    const copies = Array.from({ length: data.total }, (_, index) => unitOf(step.path, index));
    this.#board.add(copies, at);
    copies.forEach((path, index) => {
      const progress = this.step(path);
      if (progress) progress.item = data.items?.[index];
    });
  }

  #finish(step: StepProgress, status: StatusWord, at: number): void {
    step.endedAt = at;
    step.waits = [];
    step.retryAt = undefined;
    this.#board.setStatus(step, status, at);
    this.endings.push(step);
  }

  #resume({ data }: EventOf<'run.resumed'>, at: number): void {
    const diedAt = this.#lastAt ?? at;
    if (this.#lifeStartedAt !== undefined) this.#earlierLivesMs += diedAt - this.#lifeStartedAt;
    this.#lifeStartedAt = at;
    this.resumes++;
    this.end = undefined;
    this.cancelling = undefined;
    this.suspension = undefined;
    for (const step of this.active) {
      this.overlap.stop(step, diedAt);
      step.idleMs += at - diedAt;
    }
    if (data.steps) this.#board.set(data.steps);
    if (data.invalidated) this.#invalidate(data.invalidated, at);
  }

  /** Resets invalidated steps. A parent with children that are not invalidated continues instead of starting over. */
  #invalidate(paths: readonly string[], at: number): void {
    const invalidated = new Set(paths);
    const reopened = new Set<StepProgress>();
    for (const step of this.steps) {
      if (step.status === 'pending' || invalidated.has(step.path)) continue;
      for (let outer = step.parent; outer; outer = outer.parent) reopened.add(outer);
    }
    for (const path of paths) {
      const step = this.#board.tree.get(path);
      if (!step) continue;
      const { startedAt, endedAt = at, idleMs } = step;
      this.#startOver(step, at);
      if (!reopened.has(step) || startedAt === undefined) continue;
      step.startedAt = startedAt;
      step.idleMs = idleMs + at - endedAt;
      this.#board.setStatus(step, 'running', at);
    }
  }

  #startOverWithin(step: StepProgress, at: number): void {
    this.#startOver(step, at);
    for (const child of step.children) this.#startOverWithin(child, at);
  }

  #startOver(step: StepProgress, at: number): void {
    this.#board.setStatus(step, 'pending', at);
    step.startOver();
  }

  #at(path: string, at: number): StepProgress {
    const known = this.step(path);
    if (known) return known;
    this.#board.add([path], at);
    return this.#at(path, at);
  }
}

/** Folds a history into a view. */
export function viewOf(history: readonly HistoryEvent[], steps: readonly string[] = []): RunView {
  const view = new RunView(steps);
  for (const event of history) view.apply(event);
  return view;
}
