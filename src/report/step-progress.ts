import type { ErrorData } from '../core/errors.ts';
import type { EventOf } from '../core/events.ts';
import type { Json } from '../core/json.ts';
import { type Spending, spentTogether } from '../view/cost.ts';
import { WorkProgress } from '../view/step-progress.ts';
import type { StatusWord } from './glyphs.ts';

/** What a step waits for; `until` is in milliseconds since the epoch. */
export type WaitingFor =
  | { readonly on: 'approval'; readonly message: string; readonly choices: readonly string[] }
  | { readonly on: 'signal'; readonly signal: string }
  | { readonly on: 'timer'; readonly until: number | undefined }
  /** A limit of its agent. */
  | { readonly on: 'limit'; readonly until: number; readonly reason: string };

/** Where one step or one worker stands, as history tells it. Times are milliseconds since the epoch. */
export class StepProgress {
  /** `fix`, `fix:1` for a worker, `fix:1/build` inside one. */
  readonly path: string;
  /** Its place in the stable topological order. */
  index = 0;
  parent: StepProgress | undefined;
  /** The steps of the child workflow that it uses, or its workers. */
  children: StepProgress[] = [];
  /** How it became many workers. */
  fanOut: EventOf<'fanout.expanded'>['data'] | undefined;
  /** What is special about this worker. */
  item: Json | undefined;
  status: StatusWord = 'pending';
  /** Of the last start; 0 before the first. Attempts go on counting when a step is started over. */
  attempt = 0;
  /** Since it was last pending, attempts and waits included. */
  startedAt: number | undefined;
  endedAt: number | undefined;
  /** How much of the time since then nobody worked on the run. */
  idleMs = 0;
  waits: WaitingFor[] = [];
  /** When the next attempt starts. */
  retryAt: number | undefined;
  /** Of the last attempt that failed. */
  error: ErrorData | undefined;
  /** Why it was cancelled. */
  reason: string | undefined;
  skipped: EventOf<'step.skipped'>['data'] | undefined;
  answer: EventOf<'approval.given'>['data'] | undefined;
  /** It was at work when its process died, and has not started again. */
  interrupted = false;
  /** Its end was taken over from the run that this one was forked from. */
  reused = false;
  lastLine: string | undefined;
  work = new WorkProgress();
  /** Time at work, waits and pauses between attempts left out. */
  workedMs = 0;
  /** Since when it is at work. */
  workingSince: number | undefined;

  constructor(path: string) {
    this.path = path;
  }

  /** Whether it is one of the workers of a step. */
  get isWorker(): boolean {
    return /:\d+$/.test(this.path);
  }

  /** What it has used up, with all that is inside. */
  get spent(): Spending {
    if (this.children.length === 0) return this.work.spent;
    return spentTogether([this.work.spent, ...this.children.map(child => child.spent)]);
  }

  /** Without the steps around it. */
  get name(): string {
    return this.path.slice(this.path.lastIndexOf('/') + 1);
  }

  get depth(): number {
    return this.parent ? this.parent.depth + 1 : 0;
  }

  get isActive(): boolean {
    return this.status === 'running' || this.status === 'waiting' || this.status === 'retrying';
  }

  get hasEnded(): boolean {
    return this.status !== 'pending' && !this.isActive;
  }

  /** How long it took, or has taken by `now`; undefined if it never started. */
  durationMs(now: number | undefined): number | undefined {
    const until = this.endedAt ?? now;
    if (this.startedAt === undefined || until === undefined || this.reused) return undefined;
    return Math.max(0, until - this.startedAt - this.idleMs);
  }

  /** As if it had never run; its attempts, its time at work and its workspace stay. */
  startOver(): void {
    const { path, index, parent, children, attempt, workedMs, work, item, fanOut } = this;
    const kept = { index, parent, children, attempt, workedMs, work, item, fanOut };
    Object.assign(this, new StepProgress(path), kept);
    work.cutOff();
  }
}
