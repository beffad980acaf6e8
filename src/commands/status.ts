import { setTimeout as delay } from 'node:timers/promises';
import type { HistoryEvent } from '../core/events.ts';
import { toEpochMs } from '../core/time.ts';
import { placesOf } from '../engine/step/agent/slots.ts';
import { lockFolder, repositoryLocks, waitingAt } from '../git/lock.ts';
import { type LockState, readLock } from '../git/lock-file.ts';
import { parkedWork } from '../git/workspace/branch-records.ts';
import { isAlive, thisProcess } from '../process/table.ts';
import { type ExitCode, exitCodes } from '../project/exit-codes.ts';
import { type CommandIo, lookOf, writeLines } from '../project/host.ts';
import { openStoredRuns, ownershipOf } from '../project/runs.ts';
import type { EventStore, Owner, RunSummary } from '../store/port.ts';
import type { WorkerRecord } from '../store/runs.ts';
import {
  type AbandonedRun,
  changeMark,
  describeStatus,
  type LaneFact,
  type LockFact,
  type StatusFacts,
  type WorkerFact,
} from '../terminal/status/facts.ts';
import { fittingLines, statusLines } from '../terminal/status/text.ts';
import { jsonText } from '../terminal/text.ts';
import { observationLines } from '../terminal/worker/reporter.ts';
import { knownCost } from '../view/cost.ts';
import { RunView } from '../view/run-view.ts';
import { dispatcher, waitsToDispatch, workerWorkflow } from '../worker/contract.ts';
import {
  claimsIn,
  openTaskPlace,
  readWrittenTasks,
  type TaskBoardOptions,
  type TaskPlace,
  taskFacts,
  type WrittenTasks,
} from './task-board.ts';

/** A worker that says nothing for so long is in trouble: it is to say something every five seconds. */
const silentMs = 30_000;

/** Looks at everything once. Nothing is changed, nor is anything made that was not there. */
async function readStatus(place: TaskPlace, written: WrittenTasks): Promise<StatusFacts> {
  const { repository, project, io } = place;
  const parked = await parkedWork(repository);
  const store = await openStoredRuns(project, 'readonly');
  try {
    const claims = await claimsIn(store);
    const runs = (await store?.list({ workflow: workerWorkflow, status: 'running' })) ?? [];
    const records = (await store?.workers.list()) ?? [];
    const workers: Seen[] = [];
    for (const worker of records) workers.push(await seeWorker(store, worker, io.now()));
    return {
      ...taskFacts(place, written, claims),
      workers: workers.map(({ fact }) => fact),
      locks: locksOf(place, { workers, runs }),
      abandoned: runs
        .filter(run => ownershipOf(run, io.now()).kind !== 'held')
        .map((run): AbandonedRun => {
          const claim = claims.find(({ runId }) => runId === run.runId);
          return { run, task: claim?.task, by: claim?.by };
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

interface Seen {
  readonly fact: WorkerFact;
  /** It asks for the lock of landings, or has it. */
  readonly isLanding: boolean;
}

async function seeWorker(store: EventStore | undefined, worker: WorkerRecord, now: number): Promise<Seen> {
  const life = lifeOf(worker, now);
  const { runId } = worker;
  const history = runId === undefined ? [] : ((await store?.read(runId)) ?? []);
  const view = new RunView();
  for (const event of history) view.apply(event);
  const last = history.findLast(({ type }) => type === 'landing.started' || type === 'landing.ended');
  const hasRun = runId !== undefined && view.end === undefined;
  const spent = hasRun ? knownCost(view.spent) : 0;
  return {
    fact: {
      worker,
      life,
      costUsd: worker.costUsd === null || spent === null ? null : worker.costUsd + spent,
      lane: hasRun ? laneOf(view, history) : undefined,
    },
    isLanding: life !== 'dead' && worker.state === 'landing' && last?.type === 'landing.started',
  };
}

function lifeOf(worker: WorkerRecord, now: number): WorkerFact['life'] {
  if (worker.host === thisProcess().host && !isAlive(worker)) return 'dead';
  return now - toEpochMs(worker.beatAt) > silentMs ? 'silent' : 'alive';
}

function laneOf(view: RunView, events: readonly HistoryEvent[]): LaneFact {
  const [active] = [...view.active];
  return { step: active?.path, doing: observationLines({ kind: 'events', events }).at(-1)?.text };
}

interface People {
  readonly workers: readonly Seen[];
  readonly runs: readonly RunSummary[];
}

function locksOf({ project, repository, agents }: TaskPlace, people: People): readonly LockFact[] {
  const { workers } = people;
  const nameOf = (owner: Owner): string => nameOfOwner(owner, people);
  const names = [...new Set([dispatcher, ...agents.keys()])];
  const places = names.flatMap(name =>
    placesOf(project.stateDir, name).map(({ place, lock }): LockFact => {
      const holder = holderOf(lock, nameOf);
      const waiting = workers.flatMap(({ fact: { worker, life } }) =>
        name === dispatcher && life !== 'dead' && worker.note === waitsToDispatch ? worker.name : [],
      );
      return { kind: 'agent', name, place, ...holder, waiting: others(waiting, holder.holder) };
    }),
  );
  const ofRepository = repositoryLocks.map((name): LockFact => {
    const folder = lockFolder(repository, name);
    const holder = holderOf(readLock(folder), nameOf);
    // Those of one process stand in line inside of it, and leave no ticket.
    const inside =
      name === 'land' && holder.state === 'held'
        ? workers.flatMap(({ fact, isLanding }) => (isLanding ? fact.worker.name : []))
        : [];
    const waiting = [...waitingAt(folder).map(nameOf), ...inside];
    return { kind: 'repository', name, ...holder, waiting: others(waiting, holder.holder) };
  });
  return [...places, ...ofRepository].filter(({ state, waiting }) => state !== 'free' || waiting.length > 0);
}

const others = (names: readonly string[], holder: string | undefined): readonly string[] =>
  [...new Set(names)].filter(name => name !== holder);

function holderOf(lock: LockState, nameOf: (owner: Owner) => string): Pick<LockFact, 'state' | 'holder'> {
  return lock.kind === 'held' ? { state: 'held', holder: nameOf(lock.owner) } : { state: lock.kind };
}

/** The worker whose run asked for it; else its process. */
function nameOfOwner({ incarnation, pid, host }: Owner, { workers, runs }: People): string {
  const [life] = incarnation.split(':');
  const run = runs.find(({ owner }) => owner?.incarnation === life);
  const worker = workers.find(({ fact }) => run !== undefined && fact.worker.runId === run.runId);
  return worker?.fact.worker.name ?? `process ${pid} on ${host}`;
}

interface StatusCommandOptions extends TaskBoardOptions {
  /** Stay, and show what changes. */
  readonly watch?: boolean | undefined;
  readonly json?: boolean | undefined;
}

const lookEveryMs = 1000;
/** A command that lists tasks is asked less often than files are looked at. */
const listEvery = 10;

/** Shows workers, tasks and locks. Looking changes nothing. Throws NOT_A_REPOSITORY, USAGE, CONFIG_INVALID. */
export async function statusCommand(
  { io }: { readonly io: CommandIo },
  options: StatusCommandOptions,
): Promise<ExitCode> {
  const place = await openTaskPlace(io, options);
  const looks = new Looks(place);
  const { terminal } = io;
  if (!options.watch) print(place, await looks.next(io.interrupt), options);
  else if (terminal && io.isTTY.stdout && !options.json) await draw(place, looks, terminal);
  else await follow(place, looks, options);
  return exitCodes.ok;
}

/** One look after the other. */
class Looks {
  readonly #place: TaskPlace;
  #written: WrittenTasks | undefined;
  #count = 0;

  constructor(place: TaskPlace) {
    this.#place = place;
  }

  /** Throws CANCELLED. */
  async next(signal: AbortSignal): Promise<StatusFacts> {
    const isListed = this.#place.rules.tasks.kind === 'command';
    if (!this.#written || !isListed || this.#count % listEvery === 0)
      this.#written = await readWrittenTasks(this.#place, signal);
    this.#count++;
    return readStatus(this.#place, this.#written);
  }

  /** The same for somebody who may leave meanwhile: `undefined` then. */
  async nextUnless(signal: AbortSignal): Promise<StatusFacts | undefined> {
    try {
      return await this.next(signal);
    } catch (thrown) {
      if (signal.aborted) return undefined;
      throw thrown;
    }
  }
}

function print({ io, project }: TaskPlace, facts: StatusFacts, { json, watch }: StatusCommandOptions): void {
  const now = io.now();
  if (json) {
    writeLines(io.out, jsonText(describeStatus(facts, now), watch ? 0 : 2));
    return;
  }
  const lines = statusLines(facts, { ...lookOf(io, 'out'), now, commandSuffix: project.commandSuffix });
  writeLines(io.out, lines.join('\n'));
}

/** For a pipe: everything anew whenever something has changed. */
async function follow(place: TaskPlace, looks: Looks, options: StatusCommandOptions): Promise<void> {
  const { io } = place;
  let shown: string | undefined;
  while (!io.interrupt.aborted) {
    const facts = await looks.nextUnless(io.interrupt);
    if (!facts) return;
    const mark = changeMark(facts);
    if (mark !== shown) {
      if (shown !== undefined && !options.json) io.out('\n');
      print(place, facts, options);
      await io.flushed?.();
    }
    shown = mark;
    await delay(lookEveryMs, undefined, { signal: io.interrupt }).catch(() => {});
  }
}

/** For a terminal: drawn in place until somebody has seen enough. The last picture stays. */
async function draw(place: TaskPlace, looks: Looks, terminal: NodeJS.WriteStream): Promise<void> {
  const { io } = place;
  const leaving = new AbortController();
  const signal = AbortSignal.any([io.interrupt, leaving.signal]);
  const stopListening = io.listenToKeys?.(key => {
    if (key === 'q' || key === '\u0003') leaving.abort();
  });
  try {
    const last = await drawUntil(signal, { place, looks, terminal });
    if (last) print(place, last, {});
  } finally {
    stopListening?.();
  }
}

interface Drawing {
  readonly place: TaskPlace;
  readonly looks: Looks;
  readonly terminal: NodeJS.WriteStream;
}

/** What was seen last, if anything. */
async function drawUntil(
  signal: AbortSignal,
  { place, looks, terminal }: Drawing,
): Promise<StatusFacts | undefined> {
  const { io, project } = place;
  const { importScreen } = await import('../terminal/run/live.ts');
  const first = await looks.nextUnless(signal);
  if (!first) return undefined;
  let facts = first;
  const screen = (await importScreen()).openScreen(terminal);
  const redraw = () => {
    const { columns = 80, rows = 24 } = terminal;
    const { color, unicode } = lookOf(io, 'err');
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
