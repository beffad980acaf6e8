import { RepriseError } from '../core/errors.ts';
import type { HistoryEvent, NewEvent } from '../core/events.ts';
import { toEpochMs, toTimestamp } from '../core/time.ts';
import type { Lease, Owner } from '../store/port.ts';
import type { SpendingLimit, StepModel, WorkflowModel } from '../workflow/model.ts';
import { createEffects, type EngineEffects, expiry } from './effects.ts';
import type { Environment, Observer } from './environment.ts';
import { activeMs } from './history/effective.ts';
import { forkedEvents } from './history/fork.ts';
import { foldHistory, type ReplayResult, replayHistory } from './history/replay.ts';
import { interruptedSteps, resumeEvent } from './history/resume.ts';
import { type RunResult, resultOf } from './run/result.ts';
import { RunLoop } from './run/run-loop.ts';
import { buildGraph, type Graph } from './state/graph.ts';
import type { RunState } from './state/run-state.ts';

/** Whether a step of the workflow, or of a child, does something outside of this process. */
const needsWork = (workflow: WorkflowModel): boolean =>
  hasStep(workflow, ({ body }) => outside.has(body.kind));

const outside: ReadonlySet<string> = new Set(['run', 'agent', 'land', 'built-in']);

/** Whether a step of the workflow, or of a child, works with the repository. */
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

/** How a run is to be gone about; none of it changes what the run is. */
export interface RunOptions {
  /** At most so many steps at work at once; 10 unless the workflow says otherwise. */
  readonly maxConcurrentWorkers?: number | undefined;
  /** Wall time over all resumes. */
  readonly budgetMs?: number | undefined;
  /** What the agents of the run may use up. */
  readonly budget?: SpendingLimit | undefined;
  /** Aborting it cancels the run; the reason is recorded. */
  readonly interrupt?: AbortSignal | undefined;
  /** Stay even if only a person or a signal can bring the run forward. */
  readonly wait?: boolean | undefined;
}

/** A workflow as the YAML loader or the TypeScript API gives it. */
export type Definition = WorkflowModel | { readonly model: WorkflowModel };

export interface StartOptions extends RunOptions {
  readonly workflow: Definition;
  readonly input?: unknown;
  /** Recorded, so that a resume finds the definition again. */
  readonly source?: string | undefined;
}

export interface ResumeOptions extends RunOptions {
  readonly workflow: Definition;
  readonly runId: string;
  /** Run steps again that are defined otherwise now, with all that depends on them, instead of refusing. */
  readonly rerunChanged?: boolean | undefined;
}

export interface ForkOptions extends RunOptions {
  readonly workflow: Definition;
  readonly runId: string;
  /** Path of the first step to run again. */
  readonly from: string;
}

const defaultPlaces = 10;

/** Throws USAGE for what TypeScript would have refused. */
function modelOf(definition: Definition): WorkflowModel {
  const model = typeof definition === 'object' && 'model' in definition ? definition.model : definition;
  if (typeof model === 'object' && Array.isArray(model.steps)) return model;
  throw new RepriseError('USAGE', '`workflow` is not a workflow', {
    hint: 'give it what workflow() returned',
  });
}

function checkOptions({ maxConcurrentWorkers: limit }: RunOptions): void {
  if (limit === undefined || (Number.isInteger(limit) && limit >= 1)) return;
  throw new RepriseError('USAGE', `maxConcurrentWorkers must be a whole number from 1, not ${limit}`);
}

/** Runs workflows, one history each. Calls may overlap. */
export class Engine {
  readonly #environment: Environment;
  readonly #observe: Observer;
  readonly #effects: EngineEffects;
  #opened = 0;

  constructor(environment: Environment, observe: Observer = () => {}) {
    this.#environment = environment;
    this.#observe = observation => {
      try {
        observe(observation);
      } catch {
        // A view that breaks must not stop the work that it shows.
      }
    };
    this.#effects = createEffects(environment, this.#observe);
  }

  /** Loads what runs need beyond the engine itself: to be called outside of lanes, which wait for effects alone. */
  prepare(): Promise<void> {
    return this.#effects.loadWork();
  }

  /** Starts a run and sees it through. Throws INPUT_INVALID before anything is written. */
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
   * Takes a run over and sees it through: finished steps are kept, the rest runs. A run that failed or was cancelled
   * goes on where it stopped. Throws RUN_OWNED if somebody else is at it, DEFINITION_CHANGED if steps that ran are
   * defined otherwise now; then nothing was done.
   */
  async resume(options: ResumeOptions): Promise<RunResult> {
    checkOptions(options);
    const workflow = modelOf(options.workflow);
    return this.#inLane(workflow, async () => {
      const { runId } = options;
      const lease = await this.#acquire(runId);
      return this.#owning(runId, lease, async () => {
        const history = await this.#effects.read({ runId });
        const graph = buildGraph(workflow);
        const resumed = resumeEvent(graph, history, options);
        if (!resumed) return foldHistory(graph, history);
        const orphans = await this.#effects.endOrphans({ runId });
        if (orphans > 0)
          this.#observe({
            kind: 'notice',
            message: `ended ${orphans} process${orphans === 1 ? '' : 'es'} that the last owner had left running`,
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

  /** A new run that reuses everything that is not downstream of `from`. The old one stays as it is. */
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
   * Goes through a history without running or writing anything, and checks that it fits the definition and that its
   * end follows from its steps. Throws HISTORY_DIVERGED.
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

  /** `workflow`: what is to be run in it. Code is loaded before, since a lane waits for effects alone. */
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
      `run ${runId} is being run by process ${owner.pid} on ${owner.host} (its lease lasts until ${acquired.expiresAt})`,
      {
        hint: `watch it: reprise show ${runId}; or stop it: reprise cancel ${runId}`,
      },
    );
  }

  #owner(incarnation: string): Owner {
    return { ...this.#environment.self, incarnation };
  }

  /** Gives the run up whatever happens, so that it can be resumed at once. */
  async #owning(runId: string, lease: Lease, body: () => Promise<RunState>): Promise<RunResult> {
    let result: RunResult | undefined;
    try {
      result = resultOf(runId, await body());
    } finally {
      // If the store is what failed, the lease runs out by itself, and the first error is the one to show.
      await this.#effects.release({ runId, lease, status: result?.status }).catch(() => {});
    }
    return result;
  }

  async #loop({ state, runId, lease, options, usedMs }: LoopStart): Promise<void> {
    const { workflow } = state.graph.root;
    state.root = this.#environment.projectRoot;
    const totalMs = options.budgetMs ?? workflow.budgetMs;
    const loop = new RunLoop({
      environment: this.#environment,
      effects: this.#effects,
      observe: this.#observe,
      runId,
      lease,
      state,
      places: options.maxConcurrentWorkers ?? workflow.maxConcurrentWorkers ?? defaultPlaces,
      spending: options.budget ?? workflow.budget,
      budget: totalMs === undefined ? undefined : { totalMs, leftMs: Math.max(0, totalMs - usedMs) },
      interrupt: options.interrupt,
      wait: options.wait ?? false,
    });
    await loop.run();
  }
}

interface LoopStart {
  readonly state: RunState;
  readonly runId: string;
  readonly lease: Lease;
  readonly options: RunOptions;
  readonly usedMs: number;
}
