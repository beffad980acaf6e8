import { closeSync, openSync, readdirSync, readSync, statSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { logFolder, unitFileName } from '../engine/log-files.ts';
import { LineSplitter } from '../process/output.ts';
import { type ExitCode, exitCodes } from '../project/exit-codes.ts';
import { type CommandIo, writeLines } from '../project/host.ts';
import { findProject, type Project, type ProjectOptions } from '../project/project.ts';
import { hasEnded, ownershipOf, selectRun, selectUnit, withStoredRuns } from '../project/runs.ts';
import type { EventStore, RunSummary } from '../store/port.ts';
import { jsonText, painter } from '../terminal/text.ts';
import { standingOf } from '../view/run-status.ts';
import type { RunView } from '../view/run-view.ts';
import { safeOutput } from '../view/safe-text.ts';
import type { StepProgress } from '../view/step-progress.ts';

/** One file of what a step or worker printed. */
interface LogFile {
  readonly file: string;
  /** `fix`, `fix:1`. */
  readonly unit: string;
  readonly attempt: number;
  /** What it is beside the work itself, such as `check-1`. */
  readonly what?: string | undefined;
}

/** The logs of some steps and workers, in their order; each in the order in which its files came to be. */
function logFilesOf(folder: string, units: readonly string[]): readonly LogFile[] {
  const names = namesIn(folder);
  return units.flatMap(unit => {
    const start = `${unitFileName({ step: unit })}.`;
    const files = names.flatMap((name): LogFile[] => {
      const rest = name.startsWith(start) ? /^(\d+)(?:\.(.+))?\.log$/.exec(name.slice(start.length)) : null;
      if (!rest) return [];
      return [{ file: join(folder, name), unit, attempt: Number(rest[1]), what: rest[2] }];
    });
    return files.toSorted((a, b) => a.attempt - b.attempt || bornAt(a.file) - bornAt(b.file));
  });
}

function namesIn(folder: string): readonly string[] {
  try {
    return readdirSync(folder).sort();
  } catch {
    return [];
  }
}

const bornAt = (file: string): number => statSync(file, { throwIfNoEntry: false })?.birthtimeMs ?? 0;

const longestLine = 1024 * 1024;
const chunkBytes = 64 * 1024;

/** Reads on in a file that somebody else may be writing to. */
class LogReader {
  readonly #file: string;
  readonly #lines: LineSplitter;
  #offset = 0;

  constructor(file: string, onLine: (line: string) => void) {
    this.#file = file;
    this.#lines = new LineSplitter(onLine, longestLine);
  }

  /** Hands on the lines that are whole since the last time, and lets them be taken in before it reads on. */
  async read(takenIn: () => Promise<void>): Promise<void> {
    let descriptor: number;
    try {
      descriptor = openSync(this.#file, 'r');
    } catch {
      return;
    }
    try {
      const chunk = Buffer.alloc(chunkBytes);
      for (;;) {
        const length = readSync(descriptor, chunk, 0, chunkBytes, this.#offset);
        if (length === 0) return;
        this.#offset += length;
        this.#lines.push(chunk.subarray(0, length));
        await takenIn();
      }
    } finally {
      closeSync(descriptor);
    }
  }

  /** Hands on what has no line break at its end. */
  end(): void {
    this.#lines.end();
  }
}

interface LogsCommandOptions extends ProjectOptions {
  readonly run?: string | undefined;
  /** `fix`, `fix:1`; all of them by default. */
  readonly step?: string | undefined;
  /** Stay until the run ends. */
  readonly follow?: boolean | undefined;
  readonly json?: boolean | undefined;
  /** Also what agents said in their own protocol. */
  readonly raw?: boolean | undefined;
}

const pollMs = 150;

/** What went over the wire between Reprise and an agent. */
const protocol = /(^|\.)session$/;

/** Prints what the steps of a run printed and what their agents did. Looking never changes a run. */
export async function logsCommand(
  { io }: { readonly io: CommandIo },
  options: LogsCommandOptions,
): Promise<ExitCode> {
  const project = findProject(io, options);
  return withStoredRuns({ project, mode: 'readonly' }, async store => {
    const run = await selectRun(store, options.run);
    const history = await store.read(run.runId);
    const { view } = standingOf(run.runId, history);
    if (options.step !== undefined) selectUnit(view, options.step);
    const printer = new LogPrinter(io, options);
    const look = { io, project, store, view, printer, options, seen: history.length };
    if (options.follow) await follow(look, run);
    else await printer.read(filesOf(look));
    printer.end();
    if (!printer.hasPrinted) sayNothing(look);
    return exitCodes.ok;
  });
}

interface Look {
  readonly io: CommandIo;
  readonly project: Project;
  readonly store: EventStore;
  readonly view: RunView;
  readonly printer: LogPrinter;
  readonly options: LogsCommandOptions;
  /** The last event that the view knows of. */
  readonly seen: number;
}

function filesOf({ project, view, options }: Look): readonly LogFile[] {
  const units = view.steps.filter(step => isAskedFor(step, options.step)).map(({ path }) => path);
  const files = logFilesOf(logFolder(project.stateDir, view.runId ?? ''), units);
  return options.raw ? files : files.filter(({ what = '' }) => !protocol.test(what));
}

/** A step stands for all its workers and for what is inside of it. */
function isAskedFor({ path }: StepProgress, step: string | undefined): boolean {
  if (step === undefined || path === step) return true;
  return path.startsWith(`${step}:`) || path.startsWith(`${step}/`);
}

/** Until the run ends, nobody is at it any more, or the reader has seen enough. */
async function follow(look: Look, run: RunSummary): Promise<void> {
  const { io, store, view, printer } = look;
  let { seen } = look;
  for (let now = run; ; ) {
    // Asked before the files are read: what is written before the end is there by then.
    const isOver = hasEnded(now) || ownershipOf(now, io.now()).kind !== 'held';
    await printer.read(filesOf(look));
    if (isOver || io.interrupt.aborted) return;
    await delay(pollMs, undefined, { signal: io.interrupt }).catch(() => {});
    now = (await store.find(run.runId)).find(({ runId }) => runId === run.runId) ?? now;
    const events = await store.read(run.runId, seen);
    for (const event of events) view.apply(event);
    seen += events.length;
  }
}

function sayNothing({ io, view, options, project }: Look): void {
  const what = options.step === undefined ? `run ${view.runId}` : `${options.step} of run ${view.runId}`;
  writeLines(
    io.err,
    `nothing was printed by ${what}. See what happened: reprise history ${view.runId}${project.commandSuffix}`,
  );
}

/** Prints lines of several files, each with the name of its step before it unless only one was asked for. */
class LogPrinter {
  hasPrinted = false;
  readonly #io: CommandIo;
  readonly #options: LogsCommandOptions;
  readonly #readers = new Map<string, LogReader>();

  constructor(io: CommandIo, options: LogsCommandOptions) {
    this.#io = io;
    this.#options = options;
  }

  async read(files: readonly LogFile[]): Promise<void> {
    const single = files.length === 1 && !this.#options.follow && this.#options.step !== undefined;
    for (const file of files) {
      const reader =
        this.#readers.get(file.file) ?? new LogReader(file.file, line => this.#print(file, line, single));
      this.#readers.set(file.file, reader);
      await reader.read(async () => this.#io.flushed?.());
    }
  }

  end(): void {
    for (const reader of this.#readers.values()) reader.end();
  }

  #print({ unit, attempt, what }: LogFile, line: string, single: boolean): void {
    this.hasPrinted = true;
    const { out, color } = this.#io;
    if (this.#options.json) {
      const [, step = unit, worker] = /^(.*):(\d+)$/.exec(unit) ?? [];
      const where = { step, worker: worker === undefined ? null : Number(worker), attempt };
      writeLines(out, jsonText({ ...where, ...(what === undefined ? {} : { what }), line }));
      return;
    }
    const name = [attempt > 1 ? `${unit}#${attempt}` : unit, what].filter(Boolean).join(' ');
    out(`${single ? '' : `${painter(color.out)('cyan', name)} | `}${safeOutput(line)}\n`);
  }
}
