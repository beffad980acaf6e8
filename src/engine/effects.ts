import { type HistoryEvent, type Json, type NewEvent, RepriseError, toTimestamp } from '../core/index.ts';
import { Cancelled, isFlat, type Keys } from '../effects/index.ts';
import { endTrees } from '../process/index.ts';
import {
  type AcquireRequest,
  type AcquireResult,
  type Batch,
  type EventStore,
  type InboxEntry,
  type Lease,
  type NewRun,
  outcomeOf,
  type RunStatus,
} from '../store/index.ts';
import { type Environment, type Observer, outsideEffects } from './environment.ts';
import type { FunctionCall, FunctionTurn } from './run/function-step.ts';
import { tapedData } from './run/messages.ts';
import type { StepWork } from './step/work.ts';

/** All calls that the engine makes to the outside world. */
export type EngineEffects = ReturnType<typeof createEffects>;

interface Receipt {
  readonly runId: string;
  readonly receipt: string;
}

export function createEffects(environment: Environment, observe: Observer) {
  const { world, clock, ids, store, settings, isAlive } = environment;
  /** Running functions, by run and step. An effect takes only data as arguments, so it looks functions up here. */
  const calls = new Map<string, FunctionCall>();
  const endFunction = (call: FunctionCall, turn: Promise<FunctionTurn>) => {
    const grace = new AbortController();
    const ended = () => grace.abort();
    turn.then(ended, ended);
    call.cancel(new Cancelled('the step'));
    const giveUp = () => call.abandon(new Cancelled('the step'));
    clock.waitUntil(clock.now() + settings.graceMs, grace.signal).then(giveUp, () => {});
  };
  const keys = runKeys(environment);
  let work: StepWork | undefined;
  /** Receipts of durable notes whose senders have not collected them yet. */
  const receipts = new Set<string>();
  /** Runs whose engine lane has left, so that none of their notes can become durable any more. */
  const left = new Set<string>();

  return {
    calls,

    /** Loads the code for shells, agents and git. It is larger than all the rest and often not needed. */
    async loadWork(): Promise<void> {
      work ??= (await import('./step/work.ts')).createWork(environment, observe);
    },

    get work(): StepWork {
      if (!work) throw new RepriseError('INTERNAL', 'a step needs work code that loadWork() has not loaded');
      return work;
    },

    /** Called while a function runs, not by lanes. */
    endOfTurn: () => clock.endOfTurn(),

    ...outsideEffects({ world, clock }),

    newIds: world.effect<void, { readonly runId: string; readonly incarnation: string }>({
      name: 'ids.new',
      span: 'short',
      answer: 'tape',
      perform: () => ({ runId: ids.runId(), incarnation: ids.incarnation() }),
    }),

    newReceipt: world.effect<void, string>({
      name: 'ids.receipt',
      span: 'short',
      answer: 'tape',
      perform: () => ids.incarnation(),
    }),

    /** Reports that the notes of a lane are durable. */
    acknowledge: world.effect<Receipt, void>({
      name: 'receipt.give',
      span: 'short',
      answer: 'inside',
      keys: ({ runId }) => ({ writes: [`receipts:${runId}`] }),
      perform: ({ receipt }) => void receipts.add(receipt),
    }),

    /** Marks a run as left, so that every lane that waits for a receipt gets FENCED, or removes the mark. */
    leave: world.effect<{ readonly runId: string; readonly gone: boolean }, void>({
      name: 'receipt.leave',
      span: 'short',
      answer: 'inside',
      keys: ({ runId }) => ({ writes: [`receipts:${runId}`] }),
      perform: ({ runId, gone }) => void (gone ? left.add(runId) : left.delete(runId)),
    }),

    /** Waits until the notes are durable. Throws FENCED if they never will be. */
    committed: world.effect<Receipt, void>({
      name: 'receipt.await',
      span: 'short',
      answer: 'inside',
      cleanup: true,
      keys: ({ runId }) => ({ writes: [`receipts:${runId}`] }),
      enabled: ({ runId, receipt }) => receipts.has(receipt) || left.has(runId),
      perform: ({ runId, receipt }) => {
        if (!receipts.delete(receipt))
          throw new RepriseError('FENCED', `this process no longer owns run ${runId}`);
      },
    }),

    createRun: world.effect<NewRun, Lease>({
      name: 'store.create',
      span: 'short',
      answer: 'inside',
      taped: {
        args: ({ owner, events, ...run }) => ({
          ...run,
          owner: owner.incarnation,
          events: events.map(tapedEvent),
        }),
      },
      keys: keys.create,
      perform: run => store.createRun(run),
    }),

    acquire: world.effect<AcquireRequest, AcquireResult>({
      name: 'store.acquire',
      span: 'short',
      answer: 'inside',
      taped: {
        args: ({ owner, ...request }) => ({ ...request, owner: owner.incarnation }),
        result: result =>
          result.kind === 'acquired' ? result : { ...result, owner: result.owner.incarnation },
      },
      keys: keys.acquire,
      perform: async request => {
        const result = await store.acquire(request);
        if (result.kind === 'acquired' || isAlive(result.owner)) return result;
        return store.acquire({ ...request, provablyDead: result.owner.incarnation });
      },
    }),

    read: world.effect<{ readonly runId: string }, readonly HistoryEvent[]>({
      name: 'store.read',
      span: 'short',
      answer: 'inside',
      // The events are already on the tape, where they were appended.
      taped: { result: events => events.length },
      keys: ({ runId }) => ({ reads: [`store:${runId}`] }),
      perform: ({ runId }) => store.read(runId),
    }),

    renew: world.effect<
      { readonly runId: string; readonly lease: Lease; readonly expiresAt: string },
      boolean
    >({
      name: 'store.renew',
      span: 'short',
      upkeep: true,
      answer: 'inside',
      keys: keys.renew,
      perform: ({ runId, lease, expiresAt }) => store.renew(runId, lease, expiresAt),
    }),

    release: world.effect<
      { readonly runId: string; readonly lease: Lease; readonly status: RunStatus | undefined },
      void
    >({
      name: 'store.release',
      span: 'short',
      answer: 'inside',
      keys: keys.release,
      perform: ({ runId, lease, status }) => store.release(runId, lease, status),
    }),

    append: world.effect<Batch, void>({
      name: 'store.append',
      span: 'short',
      answer: 'inside',
      taped: { args: tapedBatch, lasting: { args: isLastingBatch } },
      keys: keys.append,
      perform: batch => store.append(batch),
    }),

    inbox: world.effect<string, readonly InboxEntry[]>({
      name: 'inbox.read',
      span: 'short',
      answer: 'tape',
      keys: runId => ({ reads: [`inbox:${runId}`] }),
      perform: runId => store.inbox(runId),
    }),

    /** Waits for messages of other processes that are newer than `after`. */
    nextMessages: world.effect<{ readonly runId: string; readonly after: number }, readonly InboxEntry[]>({
      name: 'inbox.next',
      span: 'long',
      answer: 'tape',
      perform: async ({ runId, after }, { signal }) => {
        for (;;) {
          const entries = (await store.inbox(runId)).filter(entry => entry.id > after);
          if (entries.length > 0) return entries;
          await clock.waitUntil(clock.now() + settings.inboxMs, signal);
        }
      },
    }),

    /** Stops the orphaned processes of a dead owner of the run. Returns their number. */
    endOrphans: world.effect<{ readonly runId: string }, number>({
      name: 'process.end-orphans',
      span: 'long',
      answer: 'tape',
      perform: async ({ runId }) => {
        const roots = await store.processes(runId);
        const { ended } = await endTrees({
          roots,
          marked: { REPRISE_RUN: runId },
          graceMs: settings.graceMs,
        });
        for (const { pid } of roots) await store.removeProcess(runId, pid);
        return ended.length;
      },
    }),

    /** Continues a function until it ends or asks for something. Abandons one that ignores its cancellation. */
    functionNext: world.effect<string, FunctionTurn>({
      name: 'function.next',
      span: 'long',
      answer: 'tape',
      taped: { lasting: { result: turn => turn.kind === 'ended' && isFlat(turn.end) } },
      perform: (key, cancellation) => {
        const call = calls.get(key);
        if (!call) throw new Error(`no running function with the key ${key}`);
        const turn = call.next();
        if (turn instanceof Promise) cancellation.onCancel(() => endFunction(call, turn));
        return turn;
      },
    }),

    functionAnswer: world.effect<{ readonly key: string; readonly wait: number; readonly value: Json }, void>(
      {
        name: 'function.answer',
        span: 'short',
        answer: 'tape',
        perform: ({ key, wait, value }) => calls.get(key)?.answer(wait, value),
      },
    ),
  };
}

/** Omits fingerprints: a changed definition shows up on the tape where it acts differently. */
const tapedEvent = ({ type, step, worker, attempt, data }: NewEvent) => ({
  type,
  step,
  worker,
  attempt,
  data: 'fingerprint' in data ? { ...data, fingerprint: undefined } : tapedData({ type, data }),
});

/** Larger batches are written to the journal at once, so that it knows how much text it holds. */
const isLastingBatch = ({ events }: Batch): boolean => events.every(({ data }) => isFlat(data));

/** Records the fields that all events of a batch share only once. */
const tapedBatch = ({ runId, lease, expectedSeq, at, events, consumed }: Batch) => ({
  runId,
  epoch: lease.epoch,
  expectedSeq,
  at,
  events: events.map(tapedEvent),
  ...(consumed && consumed.length > 0 ? { consumed } : {}),
});

export const expiry = (now: number, leaseMs: number): string => toTimestamp(now + leaseMs);

interface Release {
  readonly runId: string;
  readonly status: RunStatus | undefined;
}

/**
 * Conflict keys of the effects that change the status of a run. Other lanes usually see that status indirectly: a
 * claim of the run is no longer valid, or the run counts as abandoned. Claims and owner are read when the effect is
 * requested. Until it is performed, only the run itself can change them.
 */
function runKeys({ store }: Pick<Environment, 'store'>) {
  const claims = (runId: string): readonly string[] => keysOfClaims(store, runId);

  return {
    create: ({ runId }: { readonly runId: string }): Keys => ({
      writes: [`store:${runId}`, `lease:${runId}`, `status:${runId}`],
    }),

    acquire: ({ runId }: { readonly runId: string }): Keys => ({
      writes: [`lease:${runId}`, `abandoned:${runId}`],
    }),

    renew: ({ runId }: { readonly runId: string }): Keys => ({
      writes: [`lease:${runId}`],
    }),

    release: ({ runId, status }: Release): Keys => ({
      writes: [
        `lease:${runId}`,
        ...(status === undefined ? [] : [`status:${runId}`, ...claims(runId)]),
        ...(status === undefined || status === 'running' ? [`abandoned:${runId}`] : []),
      ],
    }),

    append: ({ runId, at, events, consumed = [] }: Batch): Keys => ({
      reads: [`lease:${runId}`],
      writes: [
        `store:${runId}`,
        ...(outcomeOf(events, at) ? [`status:${runId}`, ...claims(runId)] : []),
        ...(consumed.length > 0 ? [`inbox:${runId}`] : []),
      ],
    }),
  };
}

/** Returns the keys of the claims of a run, or the key of all claims if the store cannot list them synchronously. */
export const keysOfClaims = ({ glance }: Pick<EventStore, 'glance'>, runId: string): readonly string[] =>
  glance ? glance.tasksOf(runId).map(task => `claim:${task}`) : ['claim:'];
