import { closeSync, openSync, readdirSync, readSync, statSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { logFolder, unitFileName } from '../engine/index.ts';
import { LineSplitter } from '../process/index.ts';
import {
  type CommandIo,
  type ExitCode,
  exitCodes,
  findProject,
  hasEnded,
  ownershipOf,
  type Project,
  type ProjectOptions,
  selectRun,
  selectUnit,
  withStoredRuns,
  writeLines,
} from '../project/index.ts';
import type { EventStore, RunSummary } from '../store/index.ts';
import { jsonText, painter } from '../terminal/index.ts';
import { type RunView, runStatusOf, type StepProgress, safeOutput } from '../view/index.ts';

/** One log file of a step or copy. */
interface LogFile {
  readonly file: string;
  /** Step (`fix`) or copy (`fix:1`). */
  readonly unit: string;
  readonly attempt: number;
  /** Part of the step, such as `check-1`. Absent for its main output. */
  readonly what?: string | undefined;
}

/** Log files of the given steps and copies, in that order. The files of one unit are sorted by attempt and creation time. */
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

/** Reads the new lines of a file that another process may be writing to. */
class LogReader {
  readonly #file: string;
  readonly #lines: LineSplitter;
  #offset = 0;

  constructor(file: string, onLine: (line: string) => void) {
    this.#file = file;
    this.#lines = new LineSplitter(onLine, longestLine);
  }

  /** Reports the lines completed since the last call, and awaits `flushed` after each chunk so that output cannot pile up. */
  async read(flushed: () => Promise<void>): Promise<void> {
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
        await flushed();
      }
    } finally {
      closeSync(descriptor);
    }
  }

  /** Reports a last line that has no line break. */
  end(): void {
    this.#lines.end();
  }
}

interface LogsCommandOptions extends ProjectOptions {
  readonly run?: string | undefined;
  /** Step (`fix`) or copy (`fix:1`). Defaults to all. */
  readonly step?: string | undefined;
  /** Whether to keep printing until the run ends. */
  readonly follow?: boolean | undefined;
  readonly json?: boolean | undefined;
  /** Whether to include the protocol messages of agents. */
  readonly raw?: boolean | undefined;
}

const pollMs = 150;

/** Log of the protocol messages between Reprise and an agent. */
const protocol = /(^|\.)session$/;

/** Prints the output of the steps of a run and the actions of their agents. Never changes the run. */
export async function logsCommand(
  { io }: { readonly io: CommandIo },
  options: LogsCommandOptions,
): Promise<ExitCode> {
  const project = findProject(io, options);
  return withStoredRuns({ project, mode: 'readonly' }, async store => {
    const run = await selectRun(store, options.run);
    const history = await store.read(run.runId);
    const { view } = runStatusOf(run.runId, history);
    if (options.step !== undefined) selectUnit(view, options.step);
    const printer = new LogPrinter(io, options);
    const look = { io, project, store, view, printer, options, seen: history.length };
    if (options.follow) await follow(look, run);
    else await printer.read(filesOf(look));
    printer.end();
    if (!printer.hasPrinted) reportEmpty(look);
    return exitCodes.ok;
  });
}

interface LogsContext {
  readonly io: CommandIo;
  readonly project: Project;
  readonly store: EventStore;
  readonly view: RunView;
  readonly printer: LogPrinter;
  readonly options: LogsCommandOptions;
  /** Number of events that the view has applied. */
  readonly seen: number;
}

function filesOf({ project, view, options }: LogsContext): readonly LogFile[] {
  const units = view.steps.filter(step => isSelected(step, options.step)).map(({ path }) => path);
  const files = logFilesOf(logFolder(project.stateDir, view.runId ?? ''), units);
  return options.raw ? files : files.filter(({ what = '' }) => !protocol.test(what));
}

/** Whether the option names this unit. A step includes its copies and the steps of its child workflow. */
function isSelected({ path }: StepProgress, step: string | undefined): boolean {
  if (step === undefined || path === step) return true;
  return path.startsWith(`${step}:`) || path.startsWith(`${step}/`);
}

/** Prints new lines until the run ends, has no live owner, or the user interrupts. */
async function follow(look: LogsContext, run: RunSummary): Promise<void> {
  const { io, project, store, view, printer } = look;
  let { seen } = look;
  for (let now = run; ; ) {
    // Checked before the files are read, so that lines written before the end are not missed.
    const isOver = hasEnded(now) || ownershipOf(now, project).kind !== 'held';
    await printer.read(filesOf(look));
    if (isOver || io.interrupt.aborted) return;
    await delay(pollMs, undefined, { signal: io.interrupt }).catch(() => {});
    now = (await store.find(run.runId)).find(({ runId }) => runId === run.runId) ?? now;
    const events = await store.read(run.runId, seen);
    for (const event of events) view.apply(event);
    seen += events.length;
  }
}

function reportEmpty({ io, view, options, project }: LogsContext): void {
  const what = options.step === undefined ? `run ${view.runId}` : `${options.step} of run ${view.runId}`;
  writeLines(
    io.err,
    `${what} printed nothing; see its events: reprise history ${view.runId}${project.commandSuffix}`,
  );
}

/** Prints the lines of several files. Each line is prefixed with its step, unless the user asked for a single one. */
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
