import type { HistoryEvent } from '../core/events.ts';
import { toEpochMs } from '../core/time.ts';
import type { Observation } from '../engine/environment.ts';
import { nothingSpent, type Spending, spentTogether } from '../view/cost.ts';
import { RunView } from '../view/run-view.ts';
import { dispatcher, type WorkerNews } from '../worker/contract.ts';

/** `idle`: it looks for something to do. */
export type LaneState = 'idle' | 'at-work' | 'asleep' | 'ended';

/** What one worker does, folded from what it tells of itself and from what happens in its runs. */
export class WorkerLane {
  name = 'worker';
  state: LaneState = 'idle';
  /** Since when, in milliseconds since the epoch. */
  since: number;
  task: string | undefined;
  /** Why it sleeps, or came to its end. */
  note: string | undefined;
  /** How many of its tasks have landed. */
  landed = 0;
  #run: RunView | undefined;
  #before: Spending = nothingSpent;

  constructor(now: number) {
    this.since = now;
  }

  /** Of all its runs. */
  get spent(): Spending {
    return this.#run ? spentTogether([this.#before, this.#run.spent]) : this.#before;
  }

  /** Who is at it: an agent, or else the step that its run is at. */
  get agent(): string | undefined {
    const step = this.#active;
    const session = step?.work.session;
    return session && session.outcome === undefined ? session.agent : step?.name;
  }

  /** What was done last in the step that its run is at. */
  get lastAction(): string | undefined {
    return this.#active?.work.lastAction;
  }

  get #active() {
    return this.#run && [...this.#run.active][0];
  }

  tell(news: WorkerNews, now: number): void {
    switch (news.kind) {
      case 'takes-over':
        this.#begin(new RunView(), now);
        this.state = 'at-work';
        this.task = `run ${news.runId}`;
        break;
      case 'sleeps':
        this.#become('asleep', now, news.why);
        break;
      case 'ended':
        this.#become('ended', now, this.note);
        break;
      case 'enlisted':
        this.name = news.name;
        break;
      case 'lost':
      case 'let-go':
      case 'woke':
        this.#become('idle', now);
        break;
      case 'nothing':
        this.note = news.why;
        break;
      case 'problems':
      case 'left':
        break;
    }
  }

  observe(observation: Observation): void {
    if (observation.kind === 'events') for (const event of observation.events) this.#apply(event);
    else if (observation.kind === 'agent') this.#run?.agent(observation, observation.event);
  }

  #apply(event: HistoryEvent): void {
    const at = toEpochMs(event.at);
    if (event.type === 'run.started') this.#begin(new RunView(), at);
    this.#run?.apply(event);
    if (event.type === 'transition.taken' && event.data.from === dispatcher) {
      this.state = 'at-work';
      this.task = event.data.args?.['task'];
      this.since = at;
    }
    if (event.type === 'landing.ended' && event.data.outcome === 'landed') this.landed++;
    if (event.type === 'run.completed' || event.type === 'run.failed' || event.type === 'run.cancelled')
      this.#become('idle', at);
  }

  #begin(run: RunView, at: number): void {
    this.#become('idle', at);
    this.#run = run;
  }

  #become(state: LaneState, at: number, note?: string): void {
    this.#before = this.spent;
    this.#run = undefined;
    if (state !== this.state) this.since = at;
    this.state = state;
    this.note = note;
    this.task = undefined;
  }
}
