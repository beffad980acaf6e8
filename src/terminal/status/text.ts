import { toEpochMs } from '../../core/index.ts';
import { stalledText } from '../../git/index.ts';
import { costText, firstLine, type StatusWord, safeLine } from '../../view/index.ts';
import { formatProblem } from '../../workflow/index.ts';
import { type Glyphs, glyphsFor, statusColour } from '../glyphs.ts';
import type { FormatOptions } from '../run/history.ts';
import {
  type Cell,
  type Colour,
  type Column,
  count,
  nameFor,
  type Paint,
  painter,
  relativeTime,
  tableLines,
  truncate,
  wrapped,
} from '../text.ts';
import { shellWord } from '../words.ts';
import type { AbandonedRun, LockFact, ParkedFact, StatusFacts, WorkerFact } from './facts.ts';
import { countsText, isOpen, statusOfTask, uncommittedTexts } from './tasks.ts';

export interface StatusOptions extends FormatOptions {
  readonly now: number;
  /** Suffix of suggested commands, such as ` --state-dir x`. */
  readonly commandSuffix?: string | undefined;
}

/** Status of workers, tasks and locks, as lines narrower than the terminal. Empty sections are left out. */
export function statusLines(facts: StatusFacts, options: StatusOptions): readonly string[] {
  const page = new Page(facts, options);
  const sections = [page.workers(), page.tasks(), page.locks(), page.abandoned(), page.parked()];
  return sections
    .filter(lines => lines.length > 0)
    .flatMap((lines, at) => (at === 0 ? lines : ['', ...lines]));
}

/** The lines that fit, and a count of those that do not. */
export function fittingLines(
  lines: readonly string[],
  { rows, unicode }: { readonly rows: number; readonly unicode?: boolean | undefined },
): readonly string[] {
  const room = Math.max(1, rows - 1);
  if (lines.length <= room) return lines;
  const hidden = lines.length - room + 1;
  const more = `${glyphsFor(unicode).ellipsis} ${count(hidden, 'more line')}`;
  return [...lines.slice(0, room - 1), more];
}

class Page {
  readonly #facts: StatusFacts;
  readonly #options: StatusOptions;
  readonly #glyphs: Glyphs;
  readonly #paint: Paint;

  constructor(facts: StatusFacts, options: StatusOptions) {
    this.#facts = facts;
    this.#options = options;
    this.#glyphs = glyphsFor(options.unicode);
    this.#paint = painter(options.color);
  }

  workers(): readonly string[] {
    const { workers, branch, main } = this.#facts;
    const at = main === null ? 'no commits yet' : main.slice(0, 10);
    const dead = workers.filter(({ life }) => life === 'dead').length;
    if (workers.length === dead) {
      const heading = this.#heading(`no workers on ${safeLine(branch)} (${at})`);
      return [heading, ...this.#hint('start one: reprise worker'), ...this.#workerRows(workers)];
    }
    const many = count(workers.length - dead, 'worker');
    const deadText = dead === 0 ? '' : `, ${dead} dead`;
    return [this.#heading(`${many} on ${safeLine(branch)} (${at})${deadText}`), ...this.#workerRows(workers)];
  }

  tasks(): readonly string[] {
    const { tasks, problems, branch, uncommitted, howToAdd } = this.#facts;
    const open = tasks.filter(isOpen);
    const rows = open.map((task): readonly Cell[] => {
      const status = statusOfTask(task);
      return [
        this.#glyph(status),
        this.#name(task.id),
        { text: task.task?.priority ?? '' },
        { text: firstLine(task.status.text), colour: statusColour(status) },
      ];
    });
    const details = uncommittedTexts(uncommitted, branch);
    const nameless = problems.filter(({ task }) => task === undefined);
    const heading = tasks.length === 0 ? `no tasks on ${safeLine(branch)}` : `tasks: ${countsText(tasks)}`;
    return [
      this.#heading(heading),
      ...(tasks.length === 0 && uncommitted.length === 0 ? this.#hint(howToAdd) : []),
      ...this.#table(rows, [{}, {}, {}, {}]),
      ...nameless.map(problem => this.#note(firstLine(formatProblem(problem)), 'failed')),
      ...details.notes.map(note => this.#note(note, 'waiting')),
      ...(uncommitted.length === 0 ? [] : this.#hint(details.hint)),
    ];
  }

  locks(): readonly string[] {
    const { locks } = this.#facts;
    if (locks.length === 0) return [];
    const rows = locks.map((lock): readonly Cell[] => [
      this.#glyph(lock.state === 'held' ? 'running' : 'pending'),
      { text: safeLine(lock.place === undefined ? lock.name : placeText(lock)) },
      { text: safeLine(lockText(lock)) },
    ]);
    return [
      this.#heading('locks'),
      ...this.#table(rows, [{}, { shrinks: true }, {}]),
      ...locks.flatMap(({ stalled }) => (stalled === undefined ? [] : this.#hint(stalled))),
    ];
  }

  abandoned(): readonly string[] {
    const { abandoned } = this.#facts;
    if (abandoned.length === 0) return [];
    return [
      this.#heading('abandoned runs'),
      ...this.#table(
        abandoned.map(each => this.#abandonedRow(each)),
        [{}, {}, { shrinks: true }, {}],
      ),
      ...(abandoned.some(({ isSpent }) => !isSpent)
        ? this.#hint('the next worker takes over: reprise worker')
        : []),
      ...(abandoned.some(({ isSpent }) => isSpent)
        ? this.#hint('raise `runtime.budget` in reprise.yaml, then: reprise worker')
        : []),
    ];
  }

  parked(): readonly string[] {
    const { parked, branch } = this.#facts;
    const [first] = parked;
    if (!first) return [];
    return [
      this.#heading('parked work that could not land'),
      ...this.#table(
        parked.map(each => this.#parkedRow(each)),
        [{}, { shrinks: true }, {}, {}],
      ),
      ...this.#hint(`inspect it: git log ${shellWord(`${branch}..${first.branch}`)}`),
    ];
  }

  #workerRows(workers: readonly WorkerFact[]): readonly string[] {
    const rows = workers.map(fact => this.#workerRow(fact));
    const columns = [{}, {}, {}, {}, { shrinks: true }, { shrinks: true }, {}];
    const lines = this.#table(rows, columns);
    return workers.flatMap((fact, at) => {
      const { worker, life, stalledMs = 0 } = fact;
      const note = laneText(fact, this.#facts.branch);
      return [
        lines[at] ?? '',
        ...(note === '' ? [] : [this.#cut(`     ${note}`, 'dim')]),
        // Not cut: it says what to type.
        ...(life === 'stalled' ? this.#hint(stalledText(worker, stalledMs)) : []),
      ];
    });
  }

  #workerRow({ worker, life, spent }: WorkerFact): readonly Cell[] {
    const { name, state, task = '', agent = '', beatAt } = worker;
    const status = life === 'dead' ? 'failed' : life === 'stalled' ? 'waiting' : stateStatus[state];
    return [
      this.#glyph(status),
      this.#name(name, 'bold'),
      { text: life === 'alive' ? state : life, colour: statusColour(status) },
      { text: relativeTime(toEpochMs(beatAt), this.#options.now), colour: 'dim' },
      { text: safeLine(task) },
      { text: safeLine(agent) },
      {
        text: spent.costUsd > 0 ? costText(spent) : '',
        colour: 'dim',
      },
    ];
  }

  #abandonedRow({ run, task = '', by }: AbandonedRun): readonly Cell[] {
    const since = relativeTime(toEpochMs(run.startedAt), this.#options.now);
    return [
      this.#glyph('waiting'),
      { text: `run ${run.runId}` },
      { text: safeLine(task) },
      {
        text: safeLine(`started ${since}${by === undefined ? '' : ` by ${by}`}${suspendedText(run)}`),
        colour: 'dim',
      },
    ];
  }

  #parkedRow({ branch, commit, subject }: ParkedFact): readonly Cell[] {
    return [
      this.#glyph('waiting'),
      { text: safeLine(branch) },
      { text: commit.slice(0, 10), colour: 'dim' },
      { text: safeLine(subject) },
    ];
  }

  #name(name: string, colour?: Colour): Cell {
    return { text: nameFor(safeLine(name), this.#options.columns, this.#glyphs.ellipsis), colour };
  }

  #glyph(status: StatusWord): Cell {
    return { text: this.#glyphs[status], colour: statusColour(status) };
  }

  #table(rows: readonly (readonly Cell[])[], columns: readonly Column[]): readonly string[] {
    const { columns: width } = this.#options;
    return tableLines(rows, {
      columns,
      width: width - 1,
      paint: this.#paint,
      ellipsis: this.#glyphs.ellipsis,
      indent: ' ',
    });
  }

  #heading(text: string): string {
    return this.#cut(text, 'bold');
  }

  /** Wrapped instead of truncated, because it contains a command to type. */
  #hint(text: string): readonly string[] {
    const { columns, commandSuffix = '' } = this.#options;
    const command = text.includes('reprise ') ? `${text}${commandSuffix}` : text;
    return wrapped(command, columns - 2, this.#glyphs.ellipsis).map(line => ` ${this.#paint('dim', line)}`);
  }

  #note(text: string, status: StatusWord): string {
    return this.#cut(` ${this.#glyphs[status]}  ${text}`, statusColour(status));
  }

  #cut(text: string, colour: Colour | undefined): string {
    return this.#paint(colour, truncate(text, this.#options.columns - 1, this.#glyphs.ellipsis));
  }
}

const stateStatus: Readonly<Record<WorkerFact['worker']['state'], StatusWord>> = {
  starting: 'pending',
  dispatching: 'running',
  working: 'running',
  landing: 'running',
  sleeping: 'waiting',
  stopping: 'cancelled',
};

/** Current activity of a worker, or what it is waiting for. */
function laneText({ worker, life, lane }: WorkerFact, branch: string): string {
  const { pid, host, runId, note } = worker;
  const where = worker.branch === branch ? [] : [`on ${worker.branch}`];
  if (life === 'dead') {
    const takeover = runId === undefined ? '' : `; the next worker takes over run ${runId}`;
    return safeLine([...where, `process ${pid} on ${host} died${takeover}`].join('; '));
  }
  const doing = [lane?.step, note ?? lane?.doing].filter(text => text !== undefined).join(': ');
  const run = runId === undefined ? [] : [`run ${runId}`];
  return safeLine([...where, ...(doing === '' ? [] : [doing]), ...run].join('; '));
}

const placeText = ({ name, place }: LockFact): string => (place === 1 ? name : `${name} ${place}`);

function lockText({ state, holder, waiting }: LockFact): string {
  const text = {
    held: `held by ${holder ?? 'an unknown process'}`,
    abandoned: 'abandoned: its holder died, and the next process takes it over',
    free: 'free',
  }[state];
  const parts = [text, ...(waiting.length === 0 ? [] : [`${waiting.join(', ')} waiting`])];
  return parts.join('; ');
}

const suspendedText = ({ suspension }: AbandonedRun['run']): string =>
  suspension ? `; suspended: ${suspension.reason}` : '';
