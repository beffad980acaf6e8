import { setTimeout as delay } from 'node:timers/promises';
import { type HistoryEvent, RepriseError } from '../core/index.ts';
import { slotsOf } from '../engine/step/agent/index.ts';
import {
  isOwnerAlive,
  type LockState,
  lockFolder,
  readLock,
  repositoryLocks,
  stalledFor,
  stalledMs,
  stalledText,
} from '../git/index.ts';
import { parkedWork } from '../git/workspace/index.ts';
import {
  type CommandIo,
  type ExitCode,
  exitCodes,
  openStoredRuns,
  ownershipOf,
  type Project,
  styleOf,
  writeLines,
} from '../project/index.ts';
import type { EventStore, Owner, RunSummary, WorkerRecord } from '../store/index.ts';
import { jsonText, observationLines } from '../terminal/index.ts';
import {
  type AbandonedRun,
  changeMark,
  describeStatus,
  fittingLines,
  type LaneFact,
  type LockFact,
  type StatusFacts,
  statusLines,
  type WorkerFact,
} from '../terminal/status/index.ts';
import { RunView, recordedCost, spentTogether } from '../view/index.ts';
import { dispatcher, isUsedUp, waitsToDispatch, workerWorkflow } from '../worker/index.ts';
import {
  claimsIn,
  openTaskContext,
  openTaskContexts,
  projectHeading,
  readWrittenTasks,
  type TaskBoardOptions,
  type TaskContext,
  taskFacts,
  type WrittenTasks,
} from './task-board.ts';

/** Reads workers, tasks and locks once. Changes and creates nothing. */
async function readStatus(context: TaskContext, written: WrittenTasks): Promise<StatusFacts> {
  const { repository, project } = context;
  const parked = await parkedWork(repository);
  const store = await openStoredRuns(project, 'readonly');
  try {
    const claims = await claimsIn(store);
    const runs = (await store?.list({ workflow: workerWorkflow, status: ['running', 'suspended'] })) ?? [];
    const records = (await store?.workers.list()) ?? [];
    const workers: SeenWorker[] = [];
    for (const worker of records) workers.push(await seeWorker(store, worker, project));
    return {
      ...taskFacts(context, written, claims),
      workers: workers.map(({ fact }) => fact),
      locks: locksOf(context, { workers, runs }),
      abandoned: runs
        .filter(run => ownershipOf(run, project).kind !== 'held')
        .map((run): AbandonedRun => {
          const claim = claims.find(({ runId }) => runId === run.runId);
          const isSpent =
            run.suspension?.by === 'budget' && isUsedUp(run.suspension.limit, context.rules.taskBudget);
          return { run, task: claim?.task, by: claim?.by, isSpent };
        }),
      parked: parked.map(work => ({
        ...work,
        task: claims.find(({ branch }) => branch === work.branch)?.task,
      })),
    };
  } finally {
    await store?.close();
  }
}

interface SeenWorker {
  readonly fact: WorkerFact;
  /** Whether it holds or waits for the land lock. */
  readonly isLanding: boolean;
}

async function seeWorker(
  store: EventStore | undefined,
  worker: WorkerRecord,
  project: Project,
): Promise<SeenWorker> {
  const isDead = !isOwnerAlive(project.stateDir, worker);
  const stalledMs = isDead ? undefined : stalledFor(project.stateDir, worker);
  const life = isDead ? 'dead' : stalledMs === undefined ? 'alive' : 'stalled';
  const { runId } = worker;
  const history = runId === undefined || !store ? [] : await readableHistory(store, runId);
  const view = new RunView();
  for (const event of history) view.apply(event);
  const last = history.findLast(({ type }) => type === 'landing.started' || type === 'landing.ended');
  const hasRun = runId !== undefined && view.end === undefined;
  return {
    fact: {
      worker,
      life,
      stalledMs,
      spent: spentTogether([recordedCost(worker), ...(hasRun ? [view.spent] : [])]),
      lane: hasRun ? laneOf(view, history) : undefined,
    },
    isLanding: life !== 'dead' && worker.state === 'landing' && last?.type === 'landing.started',
  };
}

/** A run that cannot be read must not hide the others. The next worker reports it. */
async function readableHistory(store: EventStore, runId: string): Promise<readonly HistoryEvent[]> {
  try {
    return await store.read(runId);
  } catch (thrown) {
    if (thrown instanceof RepriseError && thrown.code === 'HISTORY_INVALID') return [];
    throw thrown;
  }
}

function laneOf(view: RunView, events: readonly HistoryEvent[]): LaneFact {
  const [active] = [...view.active];
  return { step: active?.path, doing: observationLines({ kind: 'events', events }).at(-1)?.text };
}

interface WorkersAndRuns {
  readonly workers: readonly SeenWorker[];
  readonly runs: readonly RunSummary[];
}

function locksOf({ project, repository, agents }: TaskContext, people: WorkersAndRuns): readonly LockFact[] {
  const { workers } = people;
  const nameOf = (owner: Owner): string => nameOfOwner(owner, people);
  const names = [...new Set([dispatcher, ...agents.keys()])];
  const places = names.flatMap(name =>
    slotsOf(project.state.slots, name).map(({ slot: context, lock }): LockFact => {
      const holder = holderOf(lock, nameOf);
      const waiting = workers.flatMap(({ fact: { worker, life } }) =>
        name === dispatcher && life !== 'dead' && worker.note === waitsToDispatch ? worker.name : [],
      );
      return { kind: 'agent', name, place: context, ...holder, waiting: others(waiting, holder.holder) };
    }),
  );
  const ofRepository = repositoryLocks.map((name): LockFact => {
    const folder = lockFolder(repository, name);
    const holder = holderOf(readLock(folder), nameOf);
    const waiting =
      name === 'land' && holder.state === 'held'
        ? workers.flatMap(({ fact, isLanding }) => (isLanding ? fact.worker.name : []))
        : [];
    return { kind: 'repository', name, ...holder, waiting: others(waiting, holder.holder) };
  });
  return [...places, ...ofRepository].filter(({ state, waiting }) => state !== 'free' || waiting.length > 0);
}

const others = (names: readonly string[], holder: string | undefined): readonly string[] =>
  [...new Set(names)].filter(name => name !== holder);

function holderOf(
  lock: LockState,
  nameOf: (owner: Owner) => string,
): Pick<LockFact, 'state' | 'holder' | 'stalled'> {
  if (lock.kind !== 'held') return { state: lock.kind };
  const { owner, silentMs } = lock;
  const stalled = silentMs < stalledMs ? undefined : stalledText(owner, silentMs);
  return { state: 'held', holder: nameOf(owner), ...(stalled === undefined ? {} : { stalled }) };
}

/** Name of the worker whose run owns the lock, or else of its process. */
function nameOfOwner({ incarnation, pid, host }: Owner, { workers, runs }: WorkersAndRuns): string {
  const [life] = incarnation.split(':');
  const run = runs.find(({ owner }) => owner?.incarnation === life);
  const worker = workers.find(({ fact }) => run !== undefined && fact.worker.runId === run.runId);
  return worker?.fact.worker.name ?? `process ${pid} on ${host}`;
}

interface StatusCommandOptions extends TaskBoardOptions {
  /** Whether to keep showing changes. */
  readonly watch?: boolean | undefined;
  readonly json?: boolean | undefined;
}

const lookEveryMs = 1000;
/** A command that lists tasks runs only at every tenth update. */
const listEvery = 10;

/** Shows workers, tasks and locks, and changes nothing. Throws NOT_A_REPOSITORY, USAGE, CONFIG_INVALID. */
export async function statusCommand(
  { io }: { readonly io: CommandIo },
  options: StatusCommandOptions,
): Promise<ExitCode> {
  if (options.all) {
    for (const each of await openTaskContexts(io, options))
      print(each, await new StatusReader(each).next(io.interrupt), options);
    return exitCodes.ok;
  }
  const context = await openTaskContext(io, options);
  const looks = new StatusReader(context);
  const { terminal } = io;
  if (!options.watch) print(context, await looks.next(io.interrupt), options);
  else if (terminal && io.isTTY.stdout && !options.json) await draw(context, looks, terminal);
  else await follow(context, looks, options);
  return exitCodes.ok;
}

/** Reads the status repeatedly. */
class StatusReader {
  readonly #context: TaskContext;
  #written: WrittenTasks | undefined;
  #count = 0;

  constructor(context: TaskContext) {
    this.#context = context;
  }

  /** Throws CANCELLED if the signal aborts it. */
  async next(signal: AbortSignal): Promise<StatusFacts> {
    const isListed = this.#context.rules.tasks.kind === 'command';
    if (!this.#written || !isListed || this.#count % listEvery === 0)
      this.#written = await readWrittenTasks(this.#context, signal);
    this.#count++;
    return readStatus(this.#context, this.#written);
  }

  /** Like `next`, but resolves with `undefined` once the signal is aborted. */
  async nextUnless(signal: AbortSignal): Promise<StatusFacts | undefined> {
    try {
      return await this.next(signal);
    } catch (thrown) {
      if (signal.aborted) return undefined;
      throw thrown;
    }
  }
}

function print(
  { io, project }: TaskContext,
  facts: StatusFacts,
  { json, watch, all }: StatusCommandOptions,
): void {
  const now = io.now();
  if (json) {
    const named = all ? { project: project.state.project } : {};
    writeLines(io.out, jsonText({ ...named, ...describeStatus(facts, now) }, watch || all ? 0 : 2));
    return;
  }
  if (all) writeLines(io.out, projectHeading(project));
  const lines = statusLines(facts, { ...styleOf(io, 'out'), now, commandSuffix: project.commandSuffix });
  writeLines(io.out, lines.join('\n'));
}

/** For a pipe: prints the whole status whenever it changes. */
async function follow(
  context: TaskContext,
  looks: StatusReader,
  options: StatusCommandOptions,
): Promise<void> {
  const { io } = context;
  let shown: string | undefined;
  while (!io.interrupt.aborted) {
    const facts = await looks.nextUnless(io.interrupt);
    if (!facts) return;
    const mark = changeMark(facts);
    if (mark !== shown) {
      if (shown !== undefined && !options.json) io.out('\n');
      print(context, facts, options);
      await io.flushed?.();
    }
    shown = mark;
    await delay(lookEveryMs, undefined, { signal: io.interrupt }).catch(() => {});
  }
}

/** For a terminal: redraws in place until the user quits, then prints the last status. */
async function draw(context: TaskContext, looks: StatusReader, terminal: NodeJS.WriteStream): Promise<void> {
  const { io } = context;
  const leaving = new AbortController();
  const signal = AbortSignal.any([io.interrupt, leaving.signal]);
  const stopListening = io.listenToKeys?.(key => {
    if (key === 'q' || key === '\u0003') leaving.abort();
  });
  try {
    const last = await drawUntil(signal, { context, looks, terminal });
    if (last) print(context, last, {});
  } finally {
    stopListening?.();
  }
}

interface DrawContext {
  readonly context: TaskContext;
  readonly looks: StatusReader;
  readonly terminal: NodeJS.WriteStream;
}

/** Draws until the signal is aborted. Resolves with the last status; `undefined` if there was none. */
async function drawUntil(
  signal: AbortSignal,
  { context, looks, terminal }: DrawContext,
): Promise<StatusFacts | undefined> {
  const { io, project } = context;
  const { importScreen } = await import('../terminal/run/live.ts');
  const first = await looks.nextUnless(signal);
  if (!first) return undefined;
  let facts = first;
  const screen = (await importScreen()).openScreen(terminal);
  const redraw = () => {
    const { columns = 80, rows = 24 } = terminal;
    const { color, unicode } = styleOf(io, 'err');
    const { commandSuffix } = project;
    const lines = statusLines(facts, { color, unicode, columns, now: io.now(), commandSuffix });
    screen.show({ lines: fittingLines(lines, { rows, unicode }), notices: [] });
  };
  terminal.on('resize', redraw);
  try {
    while (!signal.aborted) {
      redraw();
      await delay(lookEveryMs, undefined, { signal }).catch(() => {});
      facts = (await looks.nextUnless(signal)) ?? facts;
    }
  } finally {
    terminal.off('resize', redraw);
    await screen.close();
  }
  return facts;
}
