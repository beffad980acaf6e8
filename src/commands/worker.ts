import type { AgentDefinitions } from '../agents/index.ts';
import { type ErrorData, failedWorker, RepriseError } from '../core/index.ts';
import type { Observation } from '../engine/index.ts';
import {
  type CommandIo,
  type ExitCode,
  excludeWorkspaces,
  exitCodeOfError,
  exitCodes,
  findProject,
  liveHost,
  loadAgents,
  lockTimeoutOf,
  openEngine,
  openState,
  type Project,
  type ProjectOptions,
  readConfig,
  styleOf,
  workerRules,
  worktreesOf,
  writeLines,
} from '../project/index.ts';
import type { WorkerJournals } from '../project/journal/index.ts';
import type { EventStore } from '../store/index.ts';
import { jsonText, type WorkersReporter } from '../terminal/index.ts';
import { Purse, type TaskEnd, type WorkerEnd, type WorkerNews, type WorkerRules } from '../worker/index.ts';
import type { Config } from '../workflow/yaml/index.ts';

interface WorkerCommandOptions extends ProjectOptions {
  readonly name?: string | undefined;
  /** Branch to work on and land on. */
  readonly branch?: string | undefined;
  /** Agent for tasks that name none. */
  readonly agent?: string | undefined;
  /** Id of a run to continue. The worker ends with it. */
  readonly run?: string | undefined;
  /** Number of workers in this process. Defaults to 1. */
  readonly workers?: number | undefined;
  readonly once?: boolean | undefined;
  readonly untilIdle?: boolean | undefined;
  readonly maxTasks?: number | undefined;
  /** Budget of all workers together, in US dollars. */
  readonly budget?: number | undefined;
  readonly json?: boolean | undefined;
  readonly quiet?: boolean | undefined;
}

/** Runs workers until they are done or stopped. Throws before a worker starts if the options or settings are invalid. */
export async function workerCommand(
  { io }: { readonly io: CommandIo },
  options: WorkerCommandOptions,
): Promise<ExitCode> {
  checkOptions(options);
  const project = findProject(io, options);
  const config = await readConfig(project, io);
  const agents = await loadAgents({ project, io }, config);
  const rules = await workerRules({ io, project, config, agents }, options);
  excludeWorkspaces(project);
  const view = await openWorkersView(io, { ...options, branch: rules.branch });
  const store =
    (await project.host?.openStore?.(project.stateDir, { readonly: false })) ??
    (await openState({ ...project, mode: 'writable' }));
  try {
    const indexes = Array.from({ length: options.workers ?? 1 }, (_, index) => index);
    const { budget, maxTasks } = options;
    const purse = new Purse({ budget: budget === undefined ? undefined : { costUsd: budget }, maxTasks });
    const journals = await openJournals({ io, project, config, rules, options });
    const host = project.host ?? liveHost(journals?.tracer);
    const failure = new AbortController();
    const interrupt = AbortSignal.any([io.interrupt, failure.signal]);
    const context = { io, config, agents, rules, options, store, view, purse, interrupt };
    try {
      const workers = await Promise.all(
        indexes.map(index =>
          prepare({ ...context, project: { ...project, host: { ...host, ...journals?.of(index) } } }, index),
        ),
      );
      return exitCodeOfWorkers(await endTogether(workers, failure));
    } finally {
      await journals?.close();
    }
  } finally {
    await view.close();
    await store.close();
  }
}

/** Opens a journal per worker, unless the project disables recording or a host replaces the real world. */
async function openJournals({
  io,
  project,
  config,
  rules: { branch },
  options: { agent, budget },
}: Pick<WorkerCommandContext, 'io' | 'project' | 'config' | 'rules' | 'options'>): Promise<
  WorkerJournals | undefined
> {
  if (project.host || config.record === false) return undefined;
  const { openWorkerJournals } = await import('../project/journal/worker-journals.ts');
  return openWorkerJournals({ io, project, branch, agent, budget });
}

function checkOptions({ once, untilIdle, workers = 1, name }: WorkerCommandOptions): void {
  if (once && untilIdle) throw new RepriseError('USAGE', '--once and --until-idle cannot be combined');
  if (name !== undefined && workers > 1)
    throw new RepriseError('USAGE', '--name names a single worker and cannot be combined with --workers', {
      hint: 'omit --name: the workers are called worker-1, worker-2 and so on',
    });
  if (name !== undefined && !/^[\p{L}\p{N}][\p{L}\p{N}._-]{0,63}$/u.test(name))
    throw new RepriseError('USAGE', `${JSON.stringify(name)} is not a valid worker name`, {
      hint: 'use up to 64 letters, digits, dots, hyphens and underscores, and begin with a letter or digit',
    });
}

interface WorkerCommandContext {
  readonly io: CommandIo;
  readonly project: Project;
  readonly config: Config;
  readonly agents: AgentDefinitions;
  readonly rules: WorkerRules;
  readonly options: WorkerCommandOptions;
  readonly store: EventStore;
  readonly view: WorkersReporter;
  readonly purse: Purse;
  /** Aborts when the workers have to stop. */
  readonly interrupt: AbortSignal;
}

/** Runs the workers. If one of them fails, the others suspend their runs before the error is thrown. */
async function endTogether(
  workers: readonly (() => Promise<WorkerEnd>)[],
  failure: AbortController,
): Promise<readonly WorkerEnd[]> {
  const run = (worker: () => Promise<WorkerEnd>) =>
    worker().catch(error => {
      failure.abort(failedWorker);
      throw error;
    });
  const results = await Promise.allSettled(workers.map(run));
  for (const result of results) if (result.status === 'rejected') throw result.reason;
  return results.flatMap(result => (result.status === 'fulfilled' ? [result.value] : []));
}

/** Loads everything that a worker needs before its lane opens, because a lane may only wait for effects. */
async function prepare(
  { io, project, config, agents, rules, options, store, view, purse, interrupt }: WorkerCommandContext,
  index: number,
): Promise<() => Promise<WorkerEnd>> {
  const [{ Worker }, { createWorkerEffects }, { builtInsOf }] = await Promise.all([
    import('../worker/worker.ts'),
    import('../worker/effects/effects.ts'),
    import('../worker/steps/built-in.ts'),
  ]);
  let worker: InstanceType<typeof Worker> | undefined;
  const canWait = !options.once && !options.untilIdle && options.maxTasks === undefined;
  const { engine, environment } = await openEngine({
    ...project,
    settings: canWait ? {} : { lockTimeoutMs: lockTimeoutOf(config) },
    env: io.env,
    agents,
    store,
    worktrees: worktreesOf(project, config),
    observe: observation => {
      worker?.observe(observation);
      view.observe(index, observation);
    },
    builtIns: opened => {
      const effects = createWorkerEffects(opened, rules, purse);
      const made = new Worker({
        engine: () => engine,
        environment: opened,
        effects,
        rules,
        options: {
          name: options.name,
          run: options.run,
          once: options.once,
          untilIdle: options.untilIdle,
          interrupt,
          hurry: io.hurry,
        },
        report: news => view.report(index, news),
      });
      worker = made;
      return builtInsOf({ effects, rules, canWait, show: made.show });
    },
  });
  await engine.prepare();
  const ready = worker as InstanceType<typeof Worker>;
  return () => environment.world.open(`worker#${index}`, () => ready.run());
}

/** Exit code for the worst outcome of all workers. A stopped process exits with the code of its signal instead. */
export function exitCodeOfWorkers(ends: readonly WorkerEnd[]): ExitCode {
  const has = (reason: WorkerEnd['reason']): boolean => ends.some(end => end.reason === reason);
  const isWaiting = ends.some(({ tasks }) => tasks.some(task => task.isWaiting));
  const outcomes = new Set(
    ends.flatMap(({ tasks }) => tasks.flatMap(({ error }: TaskEnd) => (error ? exitCodeOfTask(error) : []))),
  );
  if (has('stopped')) return exitCodes.failed;
  if (has('budget') || outcomes.has(exitCodes.budget)) return exitCodes.budget;
  if (outcomes.has(exitCodes.failed)) return exitCodes.failed;
  if (outcomes.has(exitCodes.cannotLand)) return exitCodes.cannotLand;
  if (ends.some(({ hasImpossibleTask }) => hasImpossibleTask)) return exitCodes.usage;
  return isWaiting || has('stalled') || outcomes.has(exitCodes.needsPerson)
    ? exitCodes.needsPerson
    : exitCodes.ok;
}

/** A task fails, whatever mistake was the cause: the command line of the worker itself was valid. */
function exitCodeOfTask({ code, message }: ErrorData): ExitCode {
  const exitCode = exitCodeOfError(new RepriseError(code as 'INTERNAL', message));
  return exitCode === exitCodes.usage || exitCode === exitCodes.diverged ? exitCodes.failed : exitCode;
}

interface WorkersViewOptions {
  readonly branch: string;
  /** Number of workers. Defaults to 1. */
  readonly workers?: number | undefined;
  /** Whether to print NDJSON on standard output: worker activity and run events. */
  readonly json?: boolean | undefined;
  readonly quiet?: boolean | undefined;
}

/** Opens the view that fits the flags and the terminal. */
export async function openWorkersView(
  io: CommandIo,
  { branch, workers = 1, json, quiet }: WorkersViewOptions,
): Promise<WorkersReporter> {
  if (json) return jsonView(io);
  const { terminal } = io;
  if (terminal && !quiet) {
    const { createLiveWorkersReporter } = await import('../terminal/worker/live.ts');
    return createLiveWorkersReporter({
      ...styleOf(io, 'err'),
      stdout: terminal,
      workers,
      branch,
      now: () => io.now(),
      isStopping: () => io.interrupt.aborted,
    });
  }
  const { createPlainWorkersReporter } = await import('../terminal/worker/reporter.ts');
  const { color } = styleOf(io, 'err');
  return createPlainWorkersReporter({
    write: text => io.err(text),
    color,
    branch,
    quiet,
    now: () => io.now(),
  });
}

function jsonView(io: CommandIo): WorkersReporter {
  const names: string[] = [];
  const put = (worker: number, data: object) =>
    writeLines(io.out, jsonText({ worker: names[worker] ?? null, ...data } as never));
  return {
    observe: (worker: number, observation: Observation) => {
      if (observation.kind === 'events') for (const event of observation.events) put(worker, event);
      if (observation.kind === 'notice') writeLines(io.err, observation.message);
    },
    report: (worker: number, { kind, ...news }: WorkerNews) => {
      if (kind === 'enlisted' && 'name' in news) names[worker] = news.name;
      put(worker, { type: `worker.${kind}`, ...news });
    },
    close: async () => {},
  };
}
