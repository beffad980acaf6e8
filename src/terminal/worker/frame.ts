import { formatDuration, type HistoryEvent, toEpochMs, toTimestamp } from '../../core/index.ts';
import type { Observation } from '../../engine/index.ts';
import {
  nothingSpent,
  RunView,
  type Spending,
  type StatusWord,
  safeLine,
  shortSpending,
  spentTogether,
  unknownSession,
} from '../../view/index.ts';
import { dispatcher, type WorkerNews, workerWorkflow } from '../../worker/index.ts';
import { type Glyphs, statusColour } from '../glyphs.ts';
import { type Cell, count, displayWidth, nameFor, type Paint, tableLines, truncate } from '../text.ts';
import { isInterruptedWork } from './reporter.ts';

export interface WorkerFrameOptions {
  readonly branch: string;
  readonly columns: number;
  readonly rows: number;
  readonly now: number;
  /** Number of the frame, which turns the spinner. */
  readonly tick: number;
  readonly glyphs: Glyphs;
  readonly paint: Paint;
  /** Whether the workers have been asked to stop. */
  readonly isStopping: boolean;
}

/**
 * Draws one frame of the workers of this process, narrower than the terminal and at least one row shorter. If not all
 * workers fit, busy ones take precedence and the others are counted.
 */
export function workersFrame(lanes: readonly WorkerLane[], options: WorkerFrameOptions): readonly string[] {
  const height = Math.max(1, options.rows - 1);
  const header = height >= 2 ? [headerLine(lanes, options)] : [];
  const room = height - header.length;
  const shown = mostUrgent(lanes, lanes.length > room ? Math.max(1, room - 1) : room);
  const hidden = lanes.filter(lane => !shown.includes(lane));
  const rows = tableLines(
    shown.map(lane => laneRow(lane, options)),
    {
      columns: [{}, {}, { shrinks: true }, { shrinks: true }, { align: 'right' }, { align: 'right' }, {}],
      width: options.columns - 1,
      paint: options.paint,
      ellipsis: options.glyphs.ellipsis,
      indent: ' ',
    },
  );
  const footer = hidden.length > 0 && room > 1 ? [footerLine(hidden, options)] : [];
  return [...header, ...rows, ...footer];
}

const stateWords: readonly (readonly [ShownLaneState, string])[] = [
  ['at-work', 'working'],
  ['idle', 'looking for a task'],
  ['asleep', 'sleeping'],
  ['ended', 'done'],
];

function countsText(lanes: readonly WorkerLane[]): string {
  const counts = stateWords.flatMap(([state, word]) => {
    const many = lanes.filter(lane => lane.state === state).length;
    return many === 0 ? [] : [`${many} ${word}`];
  });
  return counts.join(', ');
}

function headerLine(lanes: readonly WorkerLane[], options: WorkerFrameOptions): string {
  const { branch, columns, glyphs, paint, isStopping } = options;
  const landed = lanes.reduce((sum, lane) => sum + lane.landed, 0);
  const parts = [
    ...(isStopping ? ['stopping; press Ctrl-C again to stop now'] : []),
    countsText(lanes),
    ...(landed > 0 ? [`${landed} landed`] : []),
    shortSpending(spentTogether(lanes.map(({ spent }) => spent))),
  ].filter(part => part !== '');
  const name = `${count(lanes.length, 'worker')} on ${safeLine(branch)}`;
  const nameShown = truncate(name, columns - 1, glyphs.ellipsis);
  const rest = parts.map(part => ` ${glyphs.dot} ${part}`).join('');
  const restShown = truncate(rest, Math.max(0, columns - 1 - displayWidth(nameShown)), glyphs.ellipsis);
  return `${paint('bold', nameShown)}${paint('dim', restShown)}`;
}

const urgency: Readonly<Record<ShownLaneState, number>> = { 'at-work': 0, idle: 1, asleep: 2, ended: 3 };

/** The most urgent workers, in their original order. */
function mostUrgent(lanes: readonly WorkerLane[], room: number): readonly WorkerLane[] {
  const ranked = lanes.toSorted((a, b) => urgency[a.state] - urgency[b.state]).slice(0, Math.max(0, room));
  return lanes.filter(lane => ranked.includes(lane));
}

const statuses: Readonly<Record<ShownLaneState, StatusWord>> = {
  'at-work': 'running',
  idle: 'running',
  asleep: 'waiting',
  ended: 'completed',
};

function laneRow(lane: WorkerLane, { glyphs, tick, now, columns }: WorkerFrameOptions): readonly Cell[] {
  const status = statuses[lane.state];
  const spinner = glyphs.spinner[tick % glyphs.spinner.length] ?? glyphs.running;
  return [
    { text: status === 'running' ? spinner : glyphs[status], colour: statusColour(status) },
    { text: nameFor(safeLine(lane.name), columns, glyphs.ellipsis), colour: 'bold' },
    { text: safeLine(lane.task ?? '') },
    { text: safeLine(lane.agent ?? ''), colour: 'cyan' },
    { text: shortSpending(lane.spent), colour: 'dim' },
    { text: lane.state === 'ended' ? '' : formatDuration(Math.max(0, now - lane.since)) },
    { text: doingText(lane), colour: 'dim' },
  ];
}

function doingText({ state, note, lastAction }: WorkerLane): string {
  switch (state) {
    case 'at-work':
      return lastAction ?? '';
    case 'idle':
      return 'looking for a task';
    case 'asleep':
      return safeLine(`sleeping: ${note ?? ''}`);
    case 'ended':
      return safeLine(note === undefined ? 'done' : `done: ${note}`);
  }
}

function footerLine(hidden: readonly WorkerLane[], { glyphs, paint, columns }: WorkerFrameOptions): string {
  const text = `${glyphs.ellipsis} ${hidden.length} more: ${countsText(hidden)}`;
  return ` ${paint('dim', truncate(text, columns - 2, glyphs.ellipsis))}`;
}

/** `idle` means that the worker is looking for a task. */
type ShownLaneState = 'idle' | 'at-work' | 'asleep' | 'ended';

/** View of a run whose first events another worker has shown. */
function takenOver(runId: string, now: number): RunView {
  const view = new RunView();
  const data = {
    format: 1 as const,
    workflow: workerWorkflow,
    input: {},
    steps: ['dispatch', 'work', 'land'],
  };
  view.apply({ seq: 1, runId, at: toTimestamp(now), type: 'run.started', data });
  return view;
}

/** Activity of one worker, derived from its news and from the events of its runs. */
export class WorkerLane {
  name = 'worker';
  state: ShownLaneState = 'idle';
  /** Start of the state, in milliseconds since the epoch. */
  since: number;
  task: string | undefined;
  /** Reason why it is sleeping or has ended. */
  note: string | undefined;
  /** Number of tasks that it has landed. */
  landed = 0;
  #run: RunView | undefined;
  #before: Spending = nothingSpent;
  /** Whether the events that follow are the first of a run that was taken over. */
  #isTakenOver = false;

  constructor(now: number) {
    this.since = now;
  }

  /** Spending of all its runs. */
  get spent(): Spending {
    return this.#run ? spentTogether([this.#before, this.#run.spent]) : this.#before;
  }

  /** Active agent, or else the active step. */
  get agent(): string | undefined {
    const step = this.#active;
    const session = step?.work.session;
    return session && session.outcome === undefined ? session.agent : step?.name;
  }

  /** Last action of the agent in the active step. */
  get lastAction(): string | undefined {
    return this.#active?.work.lastAction;
  }

  get #active() {
    return this.#run && [...this.#run.active][0];
  }

  report(news: WorkerNews, now: number): void {
    switch (news.kind) {
      case 'takes-over':
        this.#begin(takenOver(news.runId, now), now);
        this.#isTakenOver = true;
        this.state = 'at-work';
        this.task = `run ${news.runId}`;
        break;
      case 'sleeps':
        this.#become('asleep', now, news.why);
        break;
      case 'ended':
        this.#become('ended', now, this.note);
        break;
      case 'enlisted':
        this.name = news.name;
        break;
      case 'lost':
      case 'abandoned':
      case 'woke':
        this.#become('idle', now);
        break;
      case 'nothing':
        this.note = news.why;
        break;
      case 'problems':
      case 'unreadable':
      case 'leftover':
        break;
    }
  }

  observe(observation: Observation): void {
    if (observation.kind === 'events') {
      // The process died during the session, so its cost will never be known.
      const isCut = this.#isTakenOver && observation.events.some(isInterruptedWork);
      if (isCut) this.#before = spentTogether([this.#before, unknownSession]);
      this.#isTakenOver = false;
      for (const event of observation.events) this.#apply(event);
    }
    if (observation.kind === 'agent') this.#run?.agent(observation, observation.event);
  }

  #apply(event: HistoryEvent): void {
    const at = toEpochMs(event.at);
    if (event.type === 'run.started') this.#begin(new RunView(), at);
    this.#run?.apply(event);
    if (event.type === 'transition.taken' && event.data.from === dispatcher) {
      this.state = 'at-work';
      this.task = event.data.args?.['task'];
      this.since = at;
    }
    if (event.type === 'landing.ended' && event.data.outcome === 'landed') this.landed++;
    if (event.type === 'run.completed' || event.type === 'run.failed' || event.type === 'run.cancelled')
      this.#become('idle', at);
  }

  #begin(run: RunView, at: number): void {
    this.#become('idle', at);
    this.#run = run;
  }

  #become(state: ShownLaneState, at: number, note?: string): void {
    this.#before = this.spent;
    this.#run = undefined;
    if (state !== this.state) this.since = at;
    this.state = state;
    this.note = note;
    this.task = undefined;
  }
}
