import { existsSync } from 'node:fs';
import { RepriseError } from '../core/errors.ts';
import type { Observation } from '../engine/environment.ts';
import { type Agents, loadAgents } from '../project/agents.ts';
import { type ExitCode, exitCodeOfError, exitCodes } from '../project/exit-codes.ts';
import { type CommandIo, lookOf, writeLines } from '../project/host.ts';
import type { WorkerJournals } from '../project/journal/worker-journals.ts';
import { liveHost, openEngine, openStore, storeFile } from '../project/open-engine.ts';
import {
  excludeFromGit,
  findProject,
  type Project,
  type ProjectOptions,
  readConfig,
  worktreesOf,
} from '../project/project.ts';
import { workerRules } from '../project/worker-rules.ts';
import { jsonText } from '../terminal/text.ts';
import type { WorkersReporter } from '../terminal/worker/reporter.ts';
import type { TaskEnd, WorkerEnd, WorkerNews, WorkerRules } from '../worker/contract.ts';
import type { SpendingLimit } from '../workflow/model.ts';
import type { Config } from '../workflow/yaml/config.ts';

interface WorkerCommandOptions extends ProjectOptions {
  readonly name?: string | undefined;
  /** What is worked on and landed on. */
  readonly branch?: string | undefined;
  /** Who takes tasks that name nobody. */
  readonly agent?: string | undefined;
  /** So many in this process. */
  readonly workers?: number | undefined;
  readonly once?: boolean | undefined;
  readonly untilIdle?: boolean | undefined;
  readonly maxTasks?: number | undefined;
  /** In US dollars, for each worker. */
  readonly budget?: number | undefined;
  readonly json?: boolean | undefined;
  readonly quiet?: boolean | undefined;
}

/** Takes tasks, has them worked on and lands them, until it is told to stop. Throws before anything is done if it cannot begin. */
export async function workerCommand(
  { io }: { readonly io: CommandIo },
  options: WorkerCommandOptions,
): Promise<ExitCode> {
  checkOptions(options);
  const project = findProject(io, options);
  const config = await readConfig(project, io);
  const agents = await loadAgents({ project, io }, config);
  const rules = await workerRules({ io, project, config, agents }, options);
  if (!existsSync(storeFile(project.stateDir))) excludeFromGit(project.root);
  const view = await openWorkersView(io, { ...options, branch: rules.branch });
  const store =
    (await project.host?.openStore?.(project.stateDir, { readonly: false })) ??
    (await openStore(project.stateDir));
  try {
    const many = options.workers ?? 1;
    const places = Array.from({ length: many }, (_, place) => place);
    const budget: SpendingLimit | undefined =
      options.budget === undefined ? undefined : { costUsd: options.budget };
    const journals = await openJournals({ io, project, config, rules, options });
    const host = project.host ?? liveHost(journals?.tracer);
    const given = { io, config, agents, rules, options, store, view, budget };
    try {
      const workers = await Promise.all(
        places.map(place =>
          prepare({ ...given, project: { ...project, host: { ...host, ...journals?.of(place) } } }, place),
        ),
      );
      const ends = await Promise.all(workers.map(run => run()));
      return exitCodeOf(ends);
    } finally {
      await journals?.close();
    }
  } finally {
    await view.close();
    await store.close();
  }
}

/** Not where something stands in for the real world, and not if the project wants none. */
async function openJournals({
  io,
  project,
  config,
  rules: { branch },
  options: { agent, budget },
}: Pick<Given, 'io' | 'project' | 'config' | 'rules' | 'options'>): Promise<WorkerJournals | undefined> {
  if (project.host || config.record === false) return undefined;
  const { openWorkerJournals } = await import('../project/journal/worker-journals.ts');
  return openWorkerJournals({ io, project, branch, agent, budget });
}

function checkOptions({ once, untilIdle, workers = 1, name }: WorkerCommandOptions): void {
  if (once && untilIdle) throw new RepriseError('USAGE', '--once and --until-idle exclude each other');
  if (name !== undefined && workers > 1)
    throw new RepriseError('USAGE', '--name is for one worker, and --workers asks for several', {
      hint: 'leave the name out: they are called worker-1, worker-2 and so on',
    });
  if (name !== undefined && !/^[\p{L}\p{N}][\p{L}\p{N}._-]{0,63}$/u.test(name))
    throw new RepriseError('USAGE', `${JSON.stringify(name)} cannot be the name of a worker`, {
      hint: 'use letters, digits, dots, hyphens and underscores',
    });
}

interface Given {
  readonly io: CommandIo;
  readonly project: Project;
  readonly config: Config;
  readonly agents: Agents;
  readonly rules: WorkerRules;
  readonly options: WorkerCommandOptions;
  readonly store: Awaited<ReturnType<typeof openStore>>;
  readonly view: WorkersReporter;
  readonly budget: SpendingLimit | undefined;
}

/** Everything is loaded before a lane begins, since a lane waits for effects alone. */
async function prepare(
  { io, project, config, agents, rules, options, store, view, budget }: Given,
  place: number,
): Promise<() => Promise<WorkerEnd>> {
  const [{ Worker }, { createWorkerEffects }, { builtInsOf }] = await Promise.all([
    import('../worker/worker.ts'),
    import('../worker/effects/index.ts'),
    import('../worker/steps/index.ts'),
  ]);
  let worker: InstanceType<typeof Worker> | undefined;
  const { engine, environment } = await openEngine({
    ...project,
    env: io.env,
    agents,
    store,
    worktrees: worktreesOf(project, config),
    observe: observation => {
      worker?.observe(observation);
      view.observe(place, observation);
    },
    builtIns: opened => {
      const effects = createWorkerEffects(opened, rules);
      const made = new Worker({
        engine: () => engine,
        environment: opened,
        effects,
        rules,
        options: {
          name: options.name,
          once: options.once,
          untilIdle: options.untilIdle,
          maxTasks: options.maxTasks,
          budget,
          taskBudget: config.budget,
          interrupt: io.interrupt,
        },
        tell: news => view.tell(place, news),
      });
      worker = made;
      const canWait = !options.once && !options.untilIdle && options.maxTasks === undefined;
      return builtInsOf({ effects, rules, canWait, show: made.show });
    },
  });
  await engine.prepare();
  const ready = worker as InstanceType<typeof Worker>;
  return () => environment.world.open(`worker#${place}`, () => ready.run());
}

/** The worst that happened to a task. */
function exitCodeOf(ends: readonly WorkerEnd[]): ExitCode {
  const failures = ends.flatMap(({ tasks }) => tasks.flatMap(({ error }: TaskEnd) => error ?? []));
  if (ends.some(({ reason }) => reason === 'budget')) return exitCodes.budget;
  if (ends.some(({ reason }) => reason === 'stopped')) return exitCodes.failed;
  const codes = failures.map(({ code, message }) =>
    exitCodeOfError(new RepriseError(code as 'INTERNAL', message)),
  );
  return codes.includes(exitCodes.failed) ? exitCodes.failed : (codes[0] ?? exitCodes.ok);
}

interface WorkersViewOptions {
  readonly branch: string;
  /** How many there are going to be. */
  readonly workers?: number | undefined;
  /** NDJSON on standard output: what workers tell, and the events of their runs. */
  readonly json?: boolean | undefined;
  readonly quiet?: boolean | undefined;
}

/** What is shown while workers are at work: the view that fits the flags. */
export async function openWorkersView(
  io: CommandIo,
  { branch, workers = 1, json, quiet }: WorkersViewOptions,
): Promise<WorkersReporter> {
  if (json) return jsonView(io);
  const { terminal } = io;
  if (terminal && !quiet) {
    const { createLiveWorkersReporter } = await import('../terminal/worker/live.ts');
    return createLiveWorkersReporter({
      ...lookOf(io, 'err'),
      stdout: terminal,
      workers,
      branch,
      now: () => io.now(),
      isStopping: () => io.interrupt.aborted,
    });
  }
  const { createPlainWorkersReporter } = await import('../terminal/worker/reporter.ts');
  const { color } = lookOf(io, 'err');
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
    tell: (worker: number, { kind, ...news }: WorkerNews) => {
      if (kind === 'enlisted' && 'name' in news) names[worker] = news.name;
      put(worker, { type: `worker.${kind}`, ...news });
    },
    close: async () => {},
  };
}
