import {
  copyJson,
  type HistoryEvent,
  type NewEvent,
  RepriseError,
  toEpochMs,
  toTimestamp,
} from '../core/index.ts';
import type { Lease, Owner } from '../store/index.ts';
import type { SpendingLimit, StepModel, WorkflowModel } from '../workflow/index.ts';
import { createEffects, type EngineEffects, expiry } from './effects.ts';
import type { Environment, Observer } from './environment.ts';
import { activeMs, foldHistory, type ReplayResult, replayHistory } from './history/effective.ts';
import { forkedEvents, interruptedSteps, resumeEvent, unlandedWork } from './history/resume.ts';
import { type RunResult, resultOf } from './run/result.ts';
import { RunLoop } from './run/run-loop.ts';
import { buildGraph, type Graph, isOutside } from './state/graph.ts';
import type { RunState } from './state/run-state.ts';

/** Whether a step of the workflow or of a child workflow acts outside of this process. */
const needsWork = (workflow: WorkflowModel): boolean => hasStep(workflow, ({ body }) => isOutside(body));

/** Whether a step of the workflow or of a child workflow uses the git repository. */
const needsRepository = (workflow: WorkflowModel): boolean =>
  hasStep(workflow, ({ body }) => {
    if (body.kind === 'land') return true;
    return (body.kind === 'agent' || body.kind === 'run') && body.work?.workspace.kind === 'worktree';
  });

function hasStep(
  workflow: WorkflowModel,
  wanted: (step: StepModel) => boolean,
  seen = new Set<WorkflowModel>(),
): boolean {
  if (seen.has(workflow)) return false;
  seen.add(workflow);
  return workflow.steps.some(
    step => wanted(step) || (step.body.kind === 'uses' && hasStep(step.body.workflow, wanted, seen)),
  );
}

/** Execution options. They never affect the outcome or the fingerprint of a run. */
export interface RunOptions {
  /** Maximum number of steps that run in parallel. Defaults to the workflow's limit, else to 10. */
  readonly maxConcurrentWorkers?: number | undefined;
  /** Limit on wall time, summed over all resumes. */
  readonly budgetMs?: number | undefined;
  /** Spending limit for the agents of the run. */
  readonly budget?: SpendingLimit | undefined;
  /** Signal that cancels the run. Its reason is recorded. */
  readonly interrupt?: AbortSignal | undefined;
  /** Signal that suspends the run: a resume continues its sessions. Its reason is recorded. */
  readonly suspend?: AbortSignal | undefined;
  /** Signal that stops sessions of a suspended run at once, instead of at the end of a tool call. */
  readonly hurry?: AbortSignal | undefined;
  /** Whether to keep waiting when only an approval or a signal can advance the run. Defaults to `false`. */
  readonly wait?: boolean | undefined;
}

/** A workflow from the YAML loader or the TypeScript API. */
export type Definition = WorkflowModel | { readonly model: WorkflowModel };

export interface StartOptions extends RunOptions {
  readonly workflow: Definition;
  readonly input?: unknown;
  /** Origin of the definition. It is recorded so that a resume can load the definition again. */
  readonly source?: string | undefined;
}

export interface ResumeOptions extends RunOptions {
  readonly workflow: Definition;
  readonly runId: string;
  /** Whether to rerun changed steps and everything that depends on them, instead of refusing to resume. */
  readonly rerunChanged?: boolean | undefined;
}

export interface ForkOptions extends RunOptions {
  readonly workflow: Definition;
  readonly runId: string;
  /** Path of the first step to rerun. */
  readonly from: string;
}

const defaultSlots = 10;

/** Throws USAGE if an untyped caller passes anything but a workflow. */
function modelOf(definition: Definition): WorkflowModel {
  const model = typeof definition === 'object' && 'model' in definition ? definition.model : definition;
  if (typeof model === 'object' && Array.isArray(model.steps)) return model;
  throw new RepriseError('USAGE', '`workflow` must be a workflow definition', {
    hint: 'pass the value that workflow() returned',
  });
}

function checkOptions({ maxConcurrentWorkers: limit }: RunOptions): void {
  if (limit === undefined || (Number.isInteger(limit) && limit >= 1)) return;
  throw new RepriseError('USAGE', `maxConcurrentWorkers must be an integer of at least 1, got ${limit}`);
}

/** Runs workflows, each with its own history. Calls may overlap. */
export class Engine {
  readonly #environment: Environment;
  readonly #observe: Observer;
  readonly #effects: EngineEffects;
  /** Runs in progress, with the controllers that suspend them. */
  readonly #running = new Map<string, AbortController>();
  #opened = 0;

  constructor(environment: Environment, observe?: Observer) {
    this.#environment = environment;
    this.#observe = observation => {
      if (!observe) return;
      try {
        // An observer may change what it gets, so it gets a copy.
        observe(observation.kind === 'events' ? copyJson(observation) : observation);
      } catch {
        // A broken observer must not stop the run that it displays.
      }
    };
    this.#effects = createEffects(environment, this.#observe);
  }

  /**
   * Suspends a run of this engine, or all of them. Their results follow from `start`, `resume` and `fork`, once their
   * sessions have stopped in an orderly way; a resume continues the same sessions.
   */
  suspend({ runId, reason = 'suspended' }: { readonly runId?: string; readonly reason?: string } = {}): void {
    for (const [id, controller] of this.#running)
      if (runId === undefined || runId === id) controller.abort(reason);
  }

  /** Loads code that runs need. Must be called outside of lanes, which may wait only for effects. */
  prepare(): Promise<void> {
    return this.#effects.loadWork();
  }

  /** Starts a run and returns when it ends, waits or is suspended. Throws INPUT_INVALID before anything is written. */
  async start(options: StartOptions): Promise<RunResult> {
    checkOptions(options);
    const { source } = options;
    const workflow = modelOf(options.workflow);
    const input = workflow.input.parse(options.input ?? {});
    const graph = buildGraph(workflow);
    return this.#inLane(workflow, async () => {
      const base = needsRepository(workflow) ? await this.#effects.work.pinBase() : undefined;
      const started: NewEvent = {
        type: 'run.started',
        data: {
          format: 1,
          workflow: workflow.name,
          input,
          steps: graph.nodes.map(({ path }) => path),
          ...(source ? { source } : {}),
          ...(base ? { base } : {}),
        },
      };
      return this.#create(graph, [started], options);
    });
  }

  /**
   * Takes over a run and returns when it ends, waits or is suspended. Finished steps are kept and the rest runs; a failed or
   * cancelled run continues where it stopped. Throws RUN_OWNED if another process owns the run, and
   * DEFINITION_CHANGED if a step that already ran has changed; in both cases nothing is written. Throws
   * HISTORY_INVALID after it has quarantined a run whose history cannot be read.
   */
  async resume(options: ResumeOptions): Promise<RunResult> {
    checkOptions(options);
    const workflow = modelOf(options.workflow);
    return this.#inLane(workflow, async () => {
      const { runId } = options;
      const lease = await this.#acquire(runId);
      return this.#owning(runId, lease, async () => {
        const history = await this.#readOwned(runId);
        const graph = buildGraph(workflow);
        if (!resumeEvent(graph, history, options)) return foldHistory(graph, history);
        const lost = needsWork(workflow) ? await this.#lostUnits(history) : [];
        const resumed = resumeEvent(graph, history, { ...options, lost });
        const orphans = await this.#effects.endOrphans({ runId });
        if (orphans > 0)
          this.#observe({
            kind: 'notice',
            message: `stopped ${orphans} orphaned process${orphans === 1 ? '' : 'es'} from the previous run`,
          });
        const at = toTimestamp(await this.#effects.now());
        const first = { seq: history.length + 1, runId, at, ...resumed } as HistoryEvent;
        const state = foldHistory(graph, [...history, first]);
        const batch = [first, ...interruptedSteps(state, { runId, at })];
        for (const event of batch.slice(1)) state.apply(event);
        await this.#effects.append({ runId, lease, expectedSeq: history.length, at, events: batch });
        this.#observe({ kind: 'events', events: batch });
        await this.#loop({ state, runId, lease, options, usedMs: activeMs(history, toEpochMs) });
        return state;
      });
    });
  }

  /**
   * Ends a run whose history cannot be read: stops its processes and marks it as failed, so that no worker takes it over
   * and its task is free. The history is not changed. Throws RUN_OWNED.
   */
  async quarantine(runId: string): Promise<void> {
    await this.#inLane(undefined, async () => {
      const lease = await this.#acquire(runId);
      await this.#effects.endOrphans({ runId });
      await this.#effects.release({ runId, lease, status: 'failed' });
    });
  }

  /** Starts a new run that reuses every step that is not downstream of `from`. The old run is not changed. */
  async fork(options: ForkOptions): Promise<RunResult> {
    checkOptions(options);
    const workflow = modelOf(options.workflow);
    return this.#inLane(workflow, async () => {
      const history = await this.#effects.read({ runId: options.runId });
      const graph = buildGraph(workflow);
      return this.#create(graph, forkedEvents(graph, history, options), options);
    });
  }

  /**
   * Reads a history without running or writing anything. Throws HISTORY_DIVERGED if the history does not match the
   * definition or its end does not follow from its steps.
   */
  async replay(options: { readonly workflow: Definition; readonly runId: string }): Promise<ReplayResult> {
    const workflow = modelOf(options.workflow);
    return this.#inLane(undefined, async () => {
      const { runId } = options;
      const history = await this.#effects.read({ runId });
      const graph = buildGraph(workflow);
      return replayHistory(graph, runId, history);
    });
  }

  /** Loads the code for `workflow` first: a lane may wait only for effects. */
  async #inLane<T>(workflow: WorkflowModel | undefined, body: () => Promise<T>): Promise<T> {
    if (workflow && needsWork(workflow)) await this.#effects.loadWork();
    return this.#environment.world.open(`engine#${this.#opened++}`, body);
  }

  async #create(graph: Graph, events: readonly NewEvent[], options: RunOptions): Promise<RunResult> {
    const { runId, incarnation } = await this.#effects.newIds();
    const now = await this.#effects.now();
    const at = toTimestamp(now);
    const expiresAt = expiry(now, this.#environment.settings.leaseMs);
    const workflow = graph.root.workflow.name;
    const lease = await this.#effects.createRun({
      runId,
      workflow,
      owner: this.#owner(incarnation),
      expiresAt,
      at,
      events,
    });
    return this.#owning(runId, lease, async () => {
      const history = events.map((event, index) => ({ seq: index + 1, runId, at, ...event }) as HistoryEvent);
      const state = foldHistory(graph, history);
      this.#observe({ kind: 'events', events: history });
      await this.#loop({ state, runId, lease, options, usedMs: 0 });
      return state;
    });
  }

  async #acquire(runId: string): Promise<Lease> {
    const { incarnation } = await this.#effects.newIds();
    const now = await this.#effects.now();
    const expiresAt = expiry(now, this.#environment.settings.leaseMs);
    const acquired = await this.#effects.acquire({
      runId,
      owner: this.#owner(incarnation),
      now: toTimestamp(now),
      expiresAt,
    });
    if (acquired.kind === 'acquired') return acquired.lease;
    const { owner } = acquired;
    throw new RepriseError(
      'RUN_OWNED',
      `run ${runId} is already running in process ${owner.pid} on ${owner.host}`,
      {
        hint: `to watch it: reprise show ${runId}; to stop it: reprise cancel ${runId}`,
      },
    );
  }

  #owner(incarnation: string): Owner {
    return { ...this.#environment.self, incarnation };
  }

  /** Returns the completed units whose work must be done again, because their saved commits no longer exist. */
  async #lostUnits(history: readonly HistoryEvent[]): Promise<readonly string[]> {
    const works = unlandedWork(history);
    if (works.length === 0) return [];
    const branches = await this.#effects.work.lostBranches(works.map(({ unit: _, ...work }) => work));
    const lost = works.filter(({ branch }) => branches.includes(branch));
    for (const { unit, commit } of lost)
      this.#observe({
        kind: 'notice',
        message: `the saved work of ${unit} no longer exists (commit ${commit.slice(0, 10)}), so it is done again`,
      });
    return lost.map(({ unit }) => unit);
  }

  /** Stops the orphaned processes of a run whose history cannot be read, because nothing else will. */
  async #readOwned(runId: string): Promise<readonly HistoryEvent[]> {
    try {
      return await this.#effects.read({ runId });
    } catch (thrown) {
      if (isUnreadable(thrown)) await this.#effects.endOrphans({ runId });
      throw thrown;
    }
  }

  /**
   * Releases the run even if `body` throws, so that it can be resumed immediately. A run whose history is unreadable
   * has failed: otherwise every worker would try to take it over.
   */
  async #owning(runId: string, lease: Lease, body: () => Promise<RunState>): Promise<RunResult> {
    let status: RunResult['status'] | undefined;
    try {
      const result = resultOf(runId, await body());
      status = result.status;
      return result;
    } catch (thrown) {
      if (isUnreadable(thrown)) status = 'failed';
      throw thrown;
    } finally {
      // If the store failed, the lease expires on its own, and the first error is the one to report.
      await this.#effects.release({ runId, lease, status }).catch(() => {});
    }
  }

  async #loop({ state, runId, lease, options, usedMs }: LoopStart): Promise<void> {
    const { workflow } = state.graph.root;
    const { projectRoot, historyRoot: root = projectRoot, stateDir } = this.#environment;
    state.folders = { root, stateDir };
    const own = new AbortController();
    const totalMs = options.budgetMs ?? workflow.budgetMs;
    const loop = new RunLoop({
      environment: this.#environment,
      effects: this.#effects,
      observe: this.#observe,
      runId,
      lease,
      state,
      places: options.maxConcurrentWorkers ?? workflow.maxConcurrentWorkers ?? defaultSlots,
      spending: options.budget ?? workflow.budget,
      budget: totalMs === undefined ? undefined : { totalMs, leftMs: Math.max(0, totalMs - usedMs) },
      interrupt: options.interrupt,
      suspend: {
        signal: options.suspend ? AbortSignal.any([own.signal, options.suspend]) : own.signal,
        hurry: options.hurry,
      },
      wait: options.wait ?? false,
    });
    this.#running.set(runId, own);
    try {
      await loop.run();
    } finally {
      this.#running.delete(runId);
    }
  }
}

const isUnreadable = (thrown: unknown): boolean =>
  thrown instanceof RepriseError && thrown.code === 'HISTORY_INVALID';

interface LoopStart {
  readonly state: RunState;
  readonly runId: string;
  readonly lease: Lease;
  readonly options: RunOptions;
  readonly usedMs: number;
}
