import { rmSync } from 'node:fs';
import { type EffectOutcome, renumbered, type TracedRequest, type Tracer } from '../../effects/index.ts';
import type { ClaimResult } from '../../store/index.ts';
import { exitCodes, type Host } from '../host.ts';
import { liveHost } from '../open-engine.ts';
import { workerLine } from './command-line.ts';
import { type NoteTaker, openNoteTaker, type RunJournalOptions } from './run-journal.ts';

/** Journals of the workers of one process. Each task has its own, so that it can become a separate test. */
export interface WorkerJournals {
  /** Tracer for the world that all workers share. */
  readonly tracer: Tracer;
  /** Returns the functions with which the worker at this index starts sessions and scripts. */
  of(place: number): Pick<Host, 'openSession' | 'runShell'>;
  close(): Promise<void>;
}

export interface WorkerJournalsOptions extends Pick<RunJournalOptions, 'io' | 'project'> {
  readonly branch: string;
  readonly agent?: string | undefined;
  readonly budget?: number | undefined;
}

/** Opens and closes journals by observing the effects of the lanes, so that no lane has to ask for it. */
export function openWorkerJournals(options: WorkerJournalsOptions): WorkerJournals {
  const workers = new Map<number, WorkerNotes>();
  const closing: Promise<void>[] = [];
  const notesOf = (place: number): WorkerNotes => {
    const known = workers.get(place);
    if (known) return known;
    const created = new WorkerNotes(options, place, closed => void closing.push(closed));
    workers.set(place, created);
    return created;
  };
  const notesFor = ({ lane: { name } }: TracedRequest): WorkerNotes | undefined => {
    const [, place] = /^worker#(\d+)(?:\/|$)/.exec(name) ?? [];
    return place === undefined ? undefined : notesOf(Number(place));
  };
  const plain = liveHost();
  return {
    tracer: {
      granted: (request, place) => notesFor(request)?.granted(request, place),
      settled: (request, place, outcome) => notesFor(request)?.settled(request, place, outcome),
    },
    of: place => ({
      openSession: (request, host) => (notesOf(place).taker?.openSession ?? plain.openSession)(request, host),
      runShell: script => (notesOf(place).taker?.runShell ?? plain.runShell)(script),
    }),
    close: async () => {
      for (const notes of workers.values()) notes.end();
      await Promise.all(closing);
    },
  };
}

interface OpenJournal {
  readonly taker: NoteTaker;
  readonly tracer: Tracer;
  /** Lane of the run. */
  readonly lane: string;
  /** True if a task was claimed. Most iterations of an idle worker find none, and their journals are removed. */
  isWorthwhile: boolean;
}

class WorkerNotes implements Tracer {
  readonly #options: WorkerJournalsOptions;
  readonly #place: number;
  readonly #onClosing: (closed: Promise<void>) => void;
  #name = '';
  #open: OpenJournal | undefined;
  /** Lane whose journal could not be opened. The failure was already reported. */
  #laneWithoutJournal: string | undefined;

  constructor(options: WorkerJournalsOptions, place: number, onClosing: (closed: Promise<void>) => void) {
    this.#options = options;
    this.#place = place;
    this.#onClosing = onClosing;
  }

  get taker(): NoteTaker | undefined {
    return this.#open?.taker;
  }

  granted(...[request, place]: Parameters<Tracer['granted']>): void {
    if (request.effect.name === 'runs.left-work') this.end();
    this.#openFor(request)?.tracer.granted(request, place);
  }

  settled(...[request, place, outcome]: Parameters<Tracer['settled']>): void {
    if (request.effect.name === 'worker.enlist' && outcome.kind === 'ok') this.#name = String(outcome.value);
    const open = this.#openFor(request);
    if (!open) return;
    open.tracer.settled(request, place, outcome);
    open.isWorthwhile ||= isClaim(request, outcome);
  }

  /** Closes the open journal. Later effects do not belong to its run. */
  end(): void {
    const open = this.#open;
    if (!open) return;
    this.#open = undefined;
    const { taker, isWorthwhile } = open;
    const closed = taker.close(exitCodes.ok).then(() => {
      if (!isWorthwhile) rmSync(taker.folder, { recursive: true, force: true });
    });
    this.#onClosing(closed.catch(() => {}));
  }

  #openFor({ lane }: TracedRequest): OpenJournal | undefined {
    const [run] = /^worker#\d+\/engine#\d+/.exec(lane.name) ?? [];
    if (run === undefined || run === this.#laneWithoutJournal) return undefined;
    if (this.#open?.lane === run) return this.#open;
    this.end();
    const { branch, agent, budget, ...given } = this.#options;
    const command = workerLine({ name: this.#name, branch, agent, budget });
    const taker = openNoteTaker({ ...given, command, place: this.#place });
    this.#laneWithoutJournal = taker ? undefined : run;
    this.#open = taker && { taker, tracer: renumbered(taker.tracer), lane: run, isWorthwhile: false };
    return this.#open;
  }
}

/** True if the effect claimed a task, or took over a run that has one. */
const isClaim = ({ effect }: TracedRequest, outcome: EffectOutcome): boolean =>
  outcome.kind === 'ok' &&
  ((effect.name === 'claim.take' && (outcome.value as ClaimResult).kind === 'claimed') ||
    effect.name === 'store.acquire');
