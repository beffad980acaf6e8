import { formatDuration, RepriseError, stoppedBy, toTimestamp } from '../core/index.ts';
import type { LaneRef } from '../effects/index.ts';
import {
  type Engine,
  type Environment,
  ignoreCancellation,
  type Observation,
  type RunOptions,
  type RunResult,
} from '../engine/index.ts';
import { abandonTask, errorOf, type UnfinishedWork } from './abandon.ts';
import { isUsedUp } from './budget.ts';
import {
  type Dispatch,
  type EndReason,
  firstLineOf,
  type TaskEnd,
  type WorkerActivity,
  type WorkerEnd,
  type WorkerNews,
  type WorkerRules,
  workerSource,
} from './contract.ts';
import type { WorkerEffects } from './effects/effects.ts';
import { iterationWorkflow } from './iteration.ts';
import { pickTask } from './tasks/pick.ts';
import { isAnyWorkerBusy, readTasks, type TaskReading, whyOf } from './tasks/read.ts';
import { hasImpossibleTask } from './tasks/status.ts';
import type { WakeReason, WakeSnapshot } from './wake.ts';

export interface WorkerOptions {
  /** Name of the worker. Defaults to the first free one of `worker-1`, `worker-2` and so on. */
  readonly name?: string | undefined;
  /** Id of a run to continue. The worker ends with it. */
  readonly run?: string | undefined;
  /** End after one task, or at once if none is ready. */
  readonly once?: boolean | undefined;
  /** End when no task is ready and no worker is busy. */
  readonly untilIdle?: boolean | undefined;
  /** Suspends the runs of the worker and ends it. */
  readonly interrupt: AbortSignal;
  /** Stops sessions of a suspended run at once. */
  readonly hurry?: AbortSignal | undefined;
}

export interface WorkerDependencies {
  /** Getter of the engine, which is created after the worker because it contains the worker's steps. */
  readonly engine: () => Engine;
  readonly environment: Environment;
  readonly effects: WorkerEffects;
  readonly rules: WorkerRules;
  readonly options: WorkerOptions;
  readonly report: (news: WorkerNews) => void;
}

const beatMs = 5_000;
const firstOutageMs = 2_000;
const longestOutageMs = 5 * 60_000;

/** A loop that dispatches a task, runs it to its end and starts over; it sleeps while no task is ready. */
export class Worker {
  readonly #dependencies: WorkerDependencies;
  #incarnation = '';
  #name = '';
  #sleeps = 0;
  /** Id of a run that the worker has asked to resume and does not own yet. */
  #takingOver: string | undefined;
  /** Number of tasks in a row that an outage of the model's server ended. */
  #outages = 0;
  /** Task problems that were reported last, as JSON. */
  #complained = '[]';
  #hasImpossibleTask = false;
  /** Whether its own budget has stopped a run. What is left may be too little to notice. */
  #isBroke = false;
  /** Whether a stalled process holds a lock that a run needed. */
  #isBlocked = false;
  readonly #tasks: TaskEnd[] = [];
  /** Costs of its runs, by id. */
  readonly #costs = new Map<string, number | null>();
  /** Aborts when its runs must be suspended. */
  readonly #suspend: AbortSignal;

  constructor(dependencies: WorkerDependencies) {
    this.#dependencies = dependencies;
    const { options, effects } = dependencies;
    this.#suspend = AbortSignal.any([options.interrupt, effects.purse.signal]);
  }

  get name(): string {
    return this.#name;
  }

  /** Runs the loop; must be called in a lane. Throws on an error that no other task could avoid. */
  async run(): Promise<WorkerEnd> {
    const { environment, effects } = this.#dependencies;
    const { world } = environment;
    await this.#enlist();
    const heart = world.fork(() => ignoreCancellation(() => this.#beat()));
    try {
      const reason = await this.#loop().catch(stoppedIfCancelled);
      this.#report({ kind: 'ended', reason });
      return { reason, tasks: this.#tasks, hasImpossibleTask: this.#hasImpossibleTask };
    } finally {
      await world.cancel([heart]);
      await world.join([heart]);
      effects.purse.leave(this.#incarnation);
      await effects.dismiss({ incarnation: this.#incarnation, name: this.#name });
    }
  }

  /** Publishes the current activity. Called by the steps of an iteration. */
  readonly show = (doing: WorkerActivity): Promise<void> =>
    this.#dependencies.effects.showWorker({ incarnation: this.#incarnation, ...doing });

  /** Observer of its runs: the first events of a run prove that this worker, and not another, has taken it over. */
  readonly observe = (observation: Observation): void => {
    if (observation.kind === 'agent' && observation.event.type === 'usage')
      this.#dependencies.effects.purse.spend(this.#incarnation, observation.event);
    const runId = this.#takingOver;
    if (runId === undefined || observation.kind !== 'events') return;
    this.#takingOver = undefined;
    this.#report({ kind: 'takes-over', runId });
  };

  async #enlist(): Promise<void> {
    const { effects, rules, options } = this.#dependencies;
    const { incarnation } = await effects.newIncarnation();
    const at = toTimestamp(await effects.now());
    this.#incarnation = incarnation;
    this.#name = await effects.enlist({
      incarnation,
      name: options.name ?? 'worker',
      isNamed: options.name !== undefined,
      branch: rules.branch,
      startedAt: at,
      beatAt: at,
      state: 'starting',
      costUsd: 0,
    });
    this.#report({ kind: 'enlisted', name: this.#name });
  }

  async #beat(): Promise<void> {
    const { effects } = this.#dependencies;
    for (;;) {
      await effects.sleepUntil((await effects.now()) + beatMs);
      await effects.beat({ incarnation: this.#incarnation, beatAt: toTimestamp(await effects.now()) });
    }
  }

  async #loop(): Promise<EndReason> {
    const { rules, options } = this.#dependencies;
    for (;;) {
      const mustEnd = await this.#mustEnd();
      if (mustEnd) return mustEnd;
      const wasTakenOver = await this.#takeOver();
      if (options.run !== undefined) return 'run';
      if (wasTakenOver) continue;
      await this.show({ state: 'dispatching' });
      // A long-running worker starts no run unless a task is ready. With `--once` the run itself decides.
      const found = options.once ? undefined : await this.#look();
      const tried: IterationResult =
        !found || isAnythingReady(found) ? await this.#iterate() : { kind: 'nothing', seen: found.seen };
      if (tried.kind === 'progressed') continue;
      if (tried.kind === 'outage') {
        const woke = await this.#waitForServer();
        if (woke !== 'time') return woke;
        continue;
      }
      // Another worker may have claimed the task first, or the dispatcher may have chosen to wait or failed.
      const latest = !found || isAnythingReady(found) ? await this.#look() : found;
      if (tried.kind === 'nothing' && isAnythingReady(latest) && rules.dispatch === 'built-in') continue;
      const end = options.once ? 'nothing-to-do' : 'idle';
      if (options.once || (options.untilIdle && !isAnyWorkerBusy(latest))) {
        // Tasks and claims are not read atomically: a landing in between may have added a task.
        if (await this.#isOutdated(latest)) continue;
        return this.#idle(latest.stalled?.some(({ isGivenUp }) => isGivenUp) ? 'stalled' : end, latest);
      }
      const why = tried.kind === 'not-dispatched' ? 'the dispatcher has failed' : whyOf(latest);
      this.#report({ kind: 'sleeps', why });
      await this.show({ state: 'sleeping', note: why });
      const woke = await this.#sleep(tried.kind === 'nothing' ? tried.seen : (found ?? latest).seen);
      if (woke === 'stopped' || woke === 'budget') return woke;
      this.#report({ kind: 'woke', what: woke });
    }
  }

  async #isOutdated({ seen }: TaskReading): Promise<boolean> {
    const { effects } = this.#dependencies;
    return (await effects.whatChanged({ seen, now: await effects.now() })) !== null;
  }

  async #look(): Promise<TaskReading> {
    const { effects, rules, environment, options } = this.#dependencies;
    const { interrupt } = options;
    const found = await readTasks(effects, rules, { agents: environment.agents, interrupt });
    this.#complain(found);
    this.#hasImpossibleTask = hasImpossibleTask(found.board);
    return found;
  }

  /** Throws CONFIG_INVALID if the list of tasks could not be read. */
  #idle(reason: EndReason, before: TaskReading): EndReason {
    const { unread } = before;
    if (unread) {
      const message = 'the list of tasks cannot be read, so it is unknown whether any task is left';
      throw new RepriseError('CONFIG_INVALID', message, {
        hint: 'fix `tasks.command` in reprise.yaml, or the program that it runs',
      });
    }
    this.#report({ kind: 'nothing', why: whyOf(before) });
    return reason;
  }

  async #mustEnd(): Promise<EndReason | undefined> {
    const { effects, options } = this.#dependencies;
    const { interrupt, once } = options;
    const limit = await effects.mustStop({ interrupt, worker: this.#incarnation });
    if (limit === true) return 'stopped';
    if (once && this.#tasks.length > 0) return 'once';
    if (limit) return limit;
    if (this.#isBroke) return 'budget';
    return this.#isBlocked ? 'stalled' : undefined;
  }

  /** Resumes the first abandoned run that this worker can acquire. Returns whether there was one. */
  async #takeOver(): Promise<boolean> {
    const { effects, rules, options } = this.#dependencies;
    const { purse } = effects;
    const runs = options.run === undefined ? await effects.abandonedRuns(await effects.now()) : [options.run];
    for (const runId of runs) {
      this.#takingOver = runId;
      if (purse.hasBudget) purse.pay(this.#incarnation, runId, await effects.unfinishedWork(runId));
      try {
        const workflow = iterationWorkflow(rules);
        const result = await this.#dependencies
          .engine()
          .resume({ ...this.#limits(runId), workflow, runId, rerunChanged: true });
        // Another worker has finished the run in the meantime.
        if (this.#takingOver !== undefined) continue;
        await this.#ended(result, { isTakenOver: true });
        return true;
      } catch (thrown) {
        // Another worker acquired the run first, or its previous owner has it back.
        if (isUnreadable(thrown)) this.#report({ kind: 'unreadable', runId, why: thrown.message });
        else if (!isLost(thrown)) throw thrown;
        else if (this.#takingOver === undefined) this.#report({ kind: 'lost', runId });
      } finally {
        if (this.#takingOver !== undefined) purse.refund(runId);
        this.#takingOver = undefined;
      }
    }
    return false;
  }

  async #iterate(): Promise<IterationResult> {
    const { rules } = this.#dependencies;
    const input = { worker: this.#name, incarnation: this.#incarnation };
    const workflow = iterationWorkflow(rules);
    try {
      const result = await this.#dependencies
        .engine()
        .start({ ...this.#limits(), workflow, input, source: workerSource });
      return await this.#ended(result);
    } catch (thrown) {
      if (!isLost(thrown)) throw thrown;
      this.#report({ kind: 'lost', runId: undefined });
      return { kind: 'progressed' };
    }
  }

  #limits(runId?: string): RunOptions {
    const { effects, rules, options } = this.#dependencies;
    const budget = effects.purse.forOne(rules.taskBudget, runId);
    return { suspend: this.#suspend, hurry: options.hurry, budget };
  }

  async #ended(result: RunResult, { isTakenOver = false } = {}): Promise<IterationResult> {
    const { effects } = this.#dependencies;
    const { runId } = result;
    const unfinished = await effects.unfinishedWork(runId);
    effects.purse.pay(this.#incarnation, runId, unfinished);
    this.#costs.set(runId, unfinished.costUnknown ? null : unfinished.costUsd);
    const costUsd = [...this.#costs.values()].reduce((sum, cost) =>
      sum === null || cost === null ? null : sum + cost,
    );
    await effects.showWorker({ incarnation: this.#incarnation, state: 'dispatching', costUsd });
    const isOutage = result.status === 'failed' && result.error.code === 'AGENT_UNAVAILABLE';
    this.#outages = isOutage ? this.#outages + 1 : 0;
    if (result.status === 'completed') {
      const { task } = result.output as unknown as { readonly task: Dispatch };
      if (task.task === null) return { kind: 'nothing', seen: task.seen };
      this.#count({ task: task.task.id, runId, error: undefined });
      return { kind: 'progressed' };
    }
    if (result.status === 'suspended') return this.#suspended(result, unfinished);
    if (result.status === 'waiting') {
      const { task } = unfinished;
      this.#count({ task, runId, error: undefined, isWaiting: true });
      this.#report({ kind: 'waits', runId, task, why: whatFor(result) });
      return { kind: 'progressed' };
    }
    // The previous owner was asked to stop: the task has not failed and can be picked again.
    const wasStopped = isTakenOver && result.status === 'cancelled' && unfinished.wasStopped === true;
    // A task that is given back has not failed either, unless the worker ends with it.
    const isGivenBack = wasStopped || (isOutage && !this.#dependencies.options.once);
    if (!isGivenBack) this.#count({ task: unfinished.task, runId, error: errorOf(result) });
    await abandonTask({
      effects,
      incarnation: this.#incarnation,
      interrupt: this.#dependencies.options.interrupt,
      result,
      unfinished,
      wasStopped,
      report: news => this.#report(news),
    });
    if (isOutage) return { kind: 'outage' };
    return result.status === 'failed' && unfinished.task === undefined
      ? { kind: 'not-dispatched' }
      : { kind: 'progressed' };
  }

  /** Leaves a suspended run to the next worker. It keeps its task, its workspace and its sessions. */
  #suspended(
    { runId, by, reason, error }: Extract<RunResult, { status: 'suspended' }>,
    { task, limit }: UnfinishedWork,
  ): IterationResult {
    const { taskBudget } = this.#dependencies.rules;
    if (by === 'budget') {
      this.#count({ task, runId, error });
      this.#isBroke ||= !isUsedUp(limit, taskBudget);
    }
    if (by === 'lock') {
      this.#count({ task, runId, error });
      this.#isBlocked = true;
    }
    if (task !== undefined)
      this.#report({ kind: 'suspended', task, runId, reason: firstLineOf(reason), hint: error?.hint });
    return { kind: 'progressed' };
  }

  #count(end: TaskEnd): void {
    this.#tasks.push(end);
    this.#dependencies.effects.purse.countTask();
  }

  async #change(seen: WakeSnapshot): Promise<WakeReason> {
    const { effects } = this.#dependencies;
    for (;;) {
      if ((await effects.changed(seen)) === 'tasks') return 'tasks';
      const change = await effects.whatChanged({ seen, now: await effects.now() });
      if (change) return change;
    }
  }

  /** Waits after an outage of the model's server, twice as long each time. */
  async #waitForServer(): Promise<'time' | StopReason> {
    const { effects } = this.#dependencies;
    const ms = Math.min(longestOutageMs, firstOutageMs * 2 ** Math.max(0, this.#outages - 1));
    const why = `the model's server cannot be reached; trying again in ${formatDuration(ms)}`;
    this.#report({ kind: 'sleeps', why });
    await this.show({ state: 'sleeping', note: why });
    const until = (await effects.now()) + ms;
    return this.#sleepUntil(async () => {
      await effects.sleepUntil(until);
      return 'time';
    });
  }

  /** Sleeps until the state differs from `seen` or the worker is asked to stop. */
  #sleep(seen: WakeSnapshot): Promise<WakeReason | StopReason> {
    return this.#sleepUntil(() => this.#change(seen));
  }

  async #sleepUntil<Reason extends string>(wake: () => Promise<Reason>): Promise<Reason | StopReason> {
    const { environment, effects } = this.#dependencies;
    const { world } = environment;
    effects.purse.leave(this.#incarnation);
    const mail = world.mailbox<Reason | 'stop' | 'budget'>(`worker:${this.#incarnation}:${this.#sleeps++}`);
    const lanes: LaneRef[] = [
      world.fork(() => ignoreCancellation(async () => mail.send(await wake()))),
      world.fork(() =>
        ignoreCancellation(async () => {
          const reason = await effects.interrupted(this.#suspend);
          await mail.send(stoppedBy(reason) === 'budget' ? 'budget' : 'stop');
        }),
      ),
    ];
    try {
      const news = await mail.receiveAll();
      const [first = 'stop'] = news;
      return first === 'stop' || news.includes('stop')
        ? 'stopped'
        : news.includes('budget')
          ? 'budget'
          : first;
    } finally {
      await world.cancel(lanes);
      await world.join(lanes);
    }
  }

  #complain({ board: { problems = [] } }: TaskReading): void {
    const said = JSON.stringify(problems);
    if (said === this.#complained) return;
    this.#complained = said;
    if (problems.length > 0) this.#report({ kind: 'problems', problems });
  }

  #report(news: WorkerNews): void {
    this.#dependencies.report(news);
  }
}

/** Why a sleeping worker ends. */
type StopReason = Extract<EndReason, 'stopped' | 'budget'>;

/** Result of an iteration. */
type IterationResult =
  /** A task was dispatched, or the worker was asked to stop: the loop starts over. */
  | { readonly kind: 'progressed' }
  /** No task was dispatched. `seen`: the state that dispatch read. */
  | { readonly kind: 'nothing'; readonly seen: WakeSnapshot }
  /** The dispatcher failed. */
  | { readonly kind: 'not-dispatched' }
  /** The server of the model failed or could not be reached. */
  | { readonly kind: 'outage' };

const isLost = (thrown: unknown): boolean =>
  thrown instanceof RepriseError && (thrown.code === 'RUN_OWNED' || thrown.code === 'FENCED');

const isUnreadable = (thrown: unknown): thrown is RepriseError =>
  thrown instanceof RepriseError && thrown.code === 'HISTORY_INVALID';

/** A cancellation outside of a run means that the worker was asked to stop. */
function stoppedIfCancelled(thrown: unknown): EndReason {
  if (thrown instanceof RepriseError && thrown.code === 'CANCELLED') return 'stopped';
  throw thrown;
}

const isAnythingReady = ({ board }: TaskReading): boolean => pickTask(board).kind === 'task';

const whatFor = ({ waiting }: Extract<RunResult, { status: 'waiting' }>): string =>
  waiting.flatMap(wait => (wait.on === 'approval' ? wait.message : [])).join('; ') || 'it waits for a person';
