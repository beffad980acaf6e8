import { checkBatch, checkLease, runIdTaken, runNotFound, whoHolds } from '../ownership.ts';
import type { EventStore } from '../port.ts';
import { outcomeOf } from '../run-outcome.ts';
import { claimsOn } from './claims.ts';
import { type Database, transactionsOn } from './connection.ts';
import { historyTable } from './history.ts';
import { inboxTable } from './inbox.ts';
import { leasesTable } from './leases.ts';
import { processesTable } from './processes.ts';
import { runsTable } from './runs.ts';
import { workersOn } from './workers.ts';

/** The event store on a database that has the latest version. */
export function storeOn(db: Database, file: string): EventStore {
  const transactions = transactionsOn(db, file);
  const { write, read } = transactions;
  const runs = runsTable(db);
  const leases = leasesTable(db);
  const history = historyTable(db);
  const inbox = inboxTable(db);
  const processes = processesTable(db);
  const workers = workersOn(db, transactions);
  const claims = claimsOn({
    db,
    transactions,
    statusOf: runId => runs.get(runId).status,
    check: ({ runId, lease }) => checkLease(runId, runs.standing(runId), lease),
  });

  return {
    createRun: async run =>
      write(() => {
        const { runId, at, events, owner } = run;
        if (!runs.insert(run)) throw runIdTaken(runId);
        history.append({ runId, afterSeq: 0, at, events });
        const outcome = outcomeOf(events, at);
        if (outcome) runs.setOutcome(runId, outcome);
        return { epoch: 1, incarnation: owner.incarnation };
      }),

    acquire: async request =>
      write(() => {
        const { runId, owner, expiresAt } = request;
        const held = whoHolds(runs.get(runId).owner, request);
        return held ?? { kind: 'acquired', lease: leases.grant(runId, owner, expiresAt) };
      }),

    renew: async (runId, lease, expiresAt) => write(() => leases.renew(runId, lease, expiresAt)),

    release: async (runId, lease, status) => write(() => leases.release(runId, lease, status)),

    holdsRun: async (runId, lease) => read(() => leases.holds(runId, lease)),

    append: async batch =>
      write(() => {
        const { runId, at, events, consumed, expectedSeq } = batch;
        checkBatch(batch, runs.standing(runId));
        history.append({ runId, afterSeq: expectedSeq, at, events });
        if (consumed) inbox.remove(runId, consumed);
        const outcome = outcomeOf(events, at);
        if (outcome) runs.setOutcome(runId, outcome);
      }),

    read: async (runId, afterSeq = 0) =>
      read(() => {
        const events = history.read(runId, afterSeq);
        if (events.length === 0) runs.standing(runId);
        return events;
      }),

    list: async (query = {}) => read(() => runs.list(query)),

    find: async prefix => read(() => runs.startingWith(prefix)),

    post: async (runId, message, at) =>
      write(() => {
        if (!inbox.insert(runId, message, at)) throw runNotFound(runId);
      }),

    inbox: async runId => read(() => inbox.read(runId)),

    addProcess: async (runId, lease, child) =>
      write(() => {
        checkLease(runId, runs.standing(runId), lease);
        processes.put(runId, child);
      }),

    removeProcess: async (runId, pid) => write(() => processes.remove(runId, pid)),

    processes: async runId => read(() => processes.read(runId)),

    claims: claims.store,
    workers: workers.registry,
    glance: {
      revision: claims.revision,
      list: query => read(() => runs.list(query)),
      ownerOf: runId => read(() => runs.find(runId)?.owner),
      tasksOf: claims.tasksOf,
      workers: workers.list,
    },

    close: async () => {
      if (db.isOpen) db.close();
    },
  };
}
