import type { NewEvent } from '../core/events.ts';
import type { Timestamp } from '../core/time.ts';
import { type InboxRow, toInboxEntry } from './inbox-message.ts';
import { memoryClaims } from './memory-claims.ts';
import { memoryWorkers } from './memory-workers.ts';
import {
  checkBatch,
  checkLease,
  type Holder,
  holds,
  runIdTaken,
  runNotFound,
  whoHolds,
} from './ownership.ts';
import type { ChildRecord, EventStore, RunQuery, RunStatus, RunSummary } from './port.ts';
import { outcomeOf } from './run-outcome.ts';
import { type EventRow, toEventRow, toHistory } from './runs.ts';

interface Run {
  readonly runId: string;
  readonly workflow: string;
  readonly startedAt: Timestamp;
  status: RunStatus;
  endedAt: Timestamp | null;
  epoch: number;
  holder: Holder | null;
  readonly events: EventRow[];
  inbox: InboxRow[];
  readonly processes: Map<number, ChildRecord>;
}

/**
 * A store that lives and dies with the process. Payloads are kept as JSON text, so that what is read is a copy and
 * is exactly what a store on disk would give.
 */
export function memoryStore(): EventStore {
  const runs = new Map<string, Run>();
  let lastInboxId = 0;

  const runWith = (runId: string): Run => {
    const run = runs.get(runId);
    if (!run) throw runNotFound(runId);
    return run;
  };

  const claims = memoryClaims({
    statusOf: runId => runWith(runId).status,
    check: ({ runId, lease }) => checkLease(runId, standingOf(runWith(runId)), lease),
  });

  const workers = memoryWorkers();

  const followedByClaims = (run: Run, change: () => void): void => {
    const before = run.status;
    change();
    if (run.status !== before) claims.followRun(run.runId);
  };

  // The map is in order of creation, and sorting is stable: among equal times the youngest run stays first.
  const newestFirst = (): Run[] =>
    [...runs.values()]
      .reverse()
      .sort((a, b) => (a.startedAt < b.startedAt ? 1 : a.startedAt > b.startedAt ? -1 : 0));

  const list = ({ limit, workflow, status }: RunQuery): readonly RunSummary[] => {
    const statuses = status === undefined ? undefined : [status].flat();
    const wanted = newestFirst().filter(
      run =>
        (workflow === undefined || run.workflow === workflow) &&
        (statuses === undefined || statuses.includes(run.status)),
    );
    return wanted.slice(0, limit).map(toSummary);
  };

  return {
    async createRun({ runId, workflow, owner, expiresAt, at, events }) {
      if (runs.has(runId)) throw runIdTaken(runId);
      const run: Run = {
        runId,
        workflow,
        startedAt: at,
        status: 'running',
        endedAt: null,
        epoch: 1,
        holder: { ...owner, expiresAt },
        events: [],
        inbox: [],
        processes: new Map(),
      };
      write(run, events, at);
      runs.set(runId, run);
      return { epoch: 1, incarnation: owner.incarnation };
    },

    async acquire(request) {
      const run = runWith(request.runId);
      const held = whoHolds(run.holder, request);
      if (held) return held;
      run.epoch += 1;
      run.holder = { ...request.owner, expiresAt: request.expiresAt };
      return { kind: 'acquired', lease: { epoch: run.epoch, incarnation: request.owner.incarnation } };
    },

    async renew(runId, lease, expiresAt) {
      const run = runs.get(runId);
      if (!run?.holder || !holds(standingOf(run), lease)) return false;
      run.holder = { ...run.holder, expiresAt };
      return true;
    },

    async release(runId, lease, status) {
      const run = runs.get(runId);
      if (!run || !holds(standingOf(run), lease)) return;
      run.holder = null;
      followedByClaims(run, () => {
        run.status = status ?? run.status;
      });
    },

    async holdsRun(runId, lease) {
      const run = runs.get(runId);
      return run !== undefined && holds(standingOf(run), lease);
    },

    async append(batch) {
      const run = runWith(batch.runId);
      checkBatch(batch, standingOf(run));
      followedByClaims(run, () => write(run, batch.events, batch.at));
      const consumed = new Set(batch.consumed);
      run.inbox = run.inbox.filter(({ id }) => !consumed.has(id));
    },

    async read(runId, afterSeq = 0) {
      return toHistory(runId, afterSeq, runWith(runId).events.slice(afterSeq));
    },

    async list(query = {}) {
      return list(query);
    },

    async find(prefix) {
      const found = newestFirst().filter(({ runId }) => runId.startsWith(prefix));
      return found.slice(0, 10).map(toSummary);
    },

    async post(runId, message, at) {
      const run = runWith(runId);
      lastInboxId += 1;
      run.inbox.push({ id: lastInboxId, at, message: JSON.stringify(message) });
    },

    async inbox(runId) {
      return (runs.get(runId)?.inbox ?? []).map(row => toInboxEntry(runId, row));
    },

    async addProcess(runId, lease, { pid, processStart, step }) {
      const run = runWith(runId);
      checkLease(runId, standingOf(run), lease);
      run.processes.set(pid, { pid, processStart, step });
    },

    async removeProcess(runId, pid) {
      runs.get(runId)?.processes.delete(pid);
    },

    async processes(runId) {
      return [...(runs.get(runId)?.processes.values() ?? [])].sort((a, b) => a.pid - b.pid);
    },

    claims: claims.store,
    workers: workers.registry,
    glance: {
      revision: claims.revision,
      list,
      ownerOf: runId => {
        const run = runs.get(runId);
        return run && toSummary(run).owner;
      },
      tasksOf: claims.tasksOf,
      workers: workers.list,
    },

    async close() {},
  };
}

function write(run: Run, events: readonly NewEvent[], at: Timestamp): void {
  // Serialised as a whole before the first one is kept: a payload that cannot be must not leave half a batch.
  const rows = events.map((event, index) => toEventRow(event, run.events.length + index + 1, at));
  for (const row of rows) run.events.push(row);
  Object.assign(run, outcomeOf(events, at));
}

const standingOf = ({ epoch, holder, events }: Run) => ({
  epoch,
  incarnation: holder?.incarnation ?? null,
  lastSeq: events.length,
});

const toSummary = ({ runId, workflow, status, startedAt, endedAt, epoch, holder }: Run): RunSummary => ({
  runId,
  workflow,
  status,
  startedAt,
  endedAt,
  owner: holder && { ...holder, epoch },
});
