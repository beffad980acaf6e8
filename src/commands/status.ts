import { setTimeout as delay } from 'node:timers/promises';
import { type ExitCode, exitCodes } from '../project/exit-codes.ts';
import { type CommandIo, lookOf, writeLines } from '../project/host.ts';
import { changeMark, describeStatus, type StatusFacts } from '../terminal/status/facts.ts';
import { fittingLines, statusLines } from '../terminal/status/text.ts';
import { jsonText } from '../terminal/text.ts';
import { readStatus } from './status-facts.ts';
import {
  openTaskPlace,
  readWrittenTasks,
  type TaskBoardOptions,
  type TaskPlace,
  type WrittenTasks,
} from './task-board.ts';

export interface StatusCommandOptions extends TaskBoardOptions {
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
