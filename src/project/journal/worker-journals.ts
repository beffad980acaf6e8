import { rmSync } from 'node:fs';
import type { Outcome } from '../../effects/effect.ts';
import { renumbered, type TracedRequest, type Tracer } from '../../effects/tracer.ts';
import type { ClaimResult } from '../../store/claims.ts';
import { exitCodes } from '../exit-codes.ts';
import type { Host } from '../host.ts';
import { liveHost } from '../open-engine.ts';
import { workerLine } from './command-line.ts';
import { type NoteTaker, openNoteTaker, type RunJournalOptions } from './run-journal.ts';

/** The journals of the workers of one process: one for each task, so that each can become a test of its own. */
export interface WorkerJournals {
  /** Of the world that all of them work in. */
  readonly tracer: Tracer;
  /** Where the worker of that place starts its sessions and scripts. */
  of(place: number): Pick<Host, 'openSession' | 'runShell'>;
  close(): Promise<void>;
}

export interface WorkerJournalsOptions extends Pick<RunJournalOptions, 'io' | 'project'> {
  readonly branch: string;
  readonly agent?: string | undefined;
  readonly budget?: number | undefined;
}

/** Nothing is asked for in a lane: what is to be noted, and when, follows from what the lanes do. */
export function openWorkerJournals(options: WorkerJournalsOptions): WorkerJournals {
  const workers = new Map<number, WorkerNotes>();
  const closing: Promise<void>[] = [];
  const notesOf = (place: number): WorkerNotes => {
    const known = workers.get(place);
    if (known) return known;
    const made = new WorkerNotes(options, place, closed => void closing.push(closed));
    workers.set(place, made);
    return made;
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

interface Open {
  readonly taker: NoteTaker;
  readonly tracer: Tracer;
  /** The lane of the run. */
  readonly lane: string;
  /** Whether there is a task in it. Most looks of a worker that waits find none. */
  isWorthwhile: boolean;
}

class WorkerNotes implements Tracer {
  readonly #options: WorkerJournalsOptions;
  readonly #place: number;
  readonly #onClosing: (closed: Promise<void>) => void;
  #name = '';
  #open: Open | undefined;
  /** Of which it was said that there can be no journal. */
  #without: string | undefined;

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

  /** What comes now is no part of the run any more. */
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

  #openFor({ lane }: TracedRequest): Open | undefined {
    const [run] = /^worker#\d+\/engine#\d+/.exec(lane.name) ?? [];
    if (run === undefined || run === this.#without) return undefined;
    if (this.#open?.lane === run) return this.#open;
    this.end();
    const { branch, agent, budget, ...given } = this.#options;
    const command = workerLine({ name: this.#name, branch, agent, budget });
    const taker = openNoteTaker({ ...given, command, place: this.#place });
    this.#without = taker ? undefined : run;
    this.#open = taker && { taker, tracer: renumbered(taker.tracer), lane: run, isWorthwhile: false };
    return this.#open;
  }
}

/** A task was claimed in it, or it goes on with one. */
const isClaim = ({ effect }: TracedRequest, outcome: Outcome): boolean =>
  outcome.kind === 'ok' &&
  ((effect.name === 'claim.take' && (outcome.value as ClaimResult).kind === 'claimed') ||
    effect.name === 'store.acquire');
