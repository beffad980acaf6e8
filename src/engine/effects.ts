import { RepriseError } from '../core/errors.ts';
import type { HistoryEvent, NewEvent } from '../core/events.ts';
import type { Json } from '../core/json.ts';
import { toEpochMs, toTimestamp } from '../core/time.ts';
import { Cancelled, isFlat, type Keys } from '../effects/effect.ts';
import { endTrees } from '../process/tree.ts';
import type {
  AcquireRequest,
  AcquireResult,
  Batch,
  EventStore,
  InboxEntry,
  Lease,
  NewRun,
  RunStatus,
} from '../store/port.ts';
import { outcomeOf } from '../store/runs.ts';
import type { Environment, Observer } from './environment.ts';
import { outsideEffects } from './outside-effects.ts';
import type { FunctionCall, Turn } from './run/function-step.ts';
import type { Work } from './step/index.ts';

/** Every call of the engine to the outside, declared once. */
export type EngineEffects = ReturnType<typeof createEffects>;

interface Receipt {
  readonly runId: string;
  readonly receipt: string;
}

export function createEffects(environment: Environment, observe: Observer) {
  const { world, clock, ids, store, settings, isAlive } = environment;
  /** Functions under way, by run and step: an effect's arguments are data, and a function is not. */
  const calls = new Map<string, FunctionCall>();
  const endFunction = (call: FunctionCall, turn: Promise<Turn>) => {
    const patience = new AbortController();
    const ended = () => patience.abort();
    turn.then(ended, ended);
    call.cancel(new Cancelled('the step'));
    const giveUp = () => call.abandon(new Cancelled('the step'));
    clock.waitUntil(clock.now() + settings.graceMs, patience.signal).then(giveUp, () => {});
  };
  const keys = runKeys(environment);
  let work: Work | undefined;
  /** Notes of lanes that are durable, and whose senders have not heard of it. */
  const receipts = new Set<string>();
  /** Runs whose engine lane has left: nothing of theirs becomes durable any more. */
  const left = new Set<string>();

  return {
    calls,

    /** Everything that has to do with shells, agents and git: more code than all the rest, and often not needed. */
    async loadWork(): Promise<void> {
      work ??= (await import('./step/index.ts')).createWork(environment, observe);
    },

    get work(): Work {
      if (!work) throw new RepriseError('INTERNAL', 'a step has work to do, which nobody has prepared for');
      return work;
    },

    /** Used inside the performance of a function, not by lanes. */
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

    /** Says that what a lane asked to be remembered is durable. */
    acknowledge: world.effect<Receipt, void>({
      name: 'receipt.give',
      span: 'short',
      answer: 'inside',
      keys: ({ runId }) => ({ writes: [`receipts:${runId}`] }),
      perform: ({ receipt }) => void receipts.add(receipt),
    }),

    /** Whoever waits for a receipt, or asks for one, is told that the run has another owner; or no longer. */
    leave: world.effect<{ readonly runId: string; readonly gone: boolean }, void>({
      name: 'receipt.leave',
      span: 'short',
      answer: 'inside',
      keys: ({ runId }) => ({ writes: [`receipts:${runId}`] }),
      perform: ({ runId, gone }) => void (gone ? left.add(runId) : left.delete(runId)),
    }),

    /** Waits until it is durable. Throws FENCED if it never will be. */
    committed: world.effect<Receipt, void>({
      name: 'receipt.await',
      span: 'short',
      answer: 'inside',
      cleanup: true,
      keys: ({ runId }) => ({ writes: [`receipts:${runId}`] }),
      enabled: ({ runId, receipt }) => receipts.has(receipt) || left.has(runId),
      perform: ({ runId, receipt }) => {
        if (!receipts.delete(receipt)) throw new RepriseError('FENCED', `run ${runId} is no longer ours`);
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
        if (result.kind === 'acquired' || result.owner.host !== request.owner.host || isAlive(result.owner))
          return result;
        return store.acquire({ ...request, provablyDead: result.owner.incarnation });
      },
    }),

    read: world.effect<{ readonly runId: string }, readonly HistoryEvent[]>({
      name: 'store.read',
      span: 'short',
      answer: 'inside',
      // What is read was appended before, and is on a tape there.
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

    /** Messages of other processes that came after the last one seen. */
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

    /** Ends what a dead owner of the run left behind. */
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

    /** Lets a function go on until it ends or asks for something. One that ignores its cancellation is left alone. */
    functionNext: world.effect<string, Turn>({
      name: 'function.next',
      span: 'long',
      answer: 'tape',
      taped: { lasting: { result: turn => turn.kind === 'ended' && isFlat(turn.end) } },
      perform: (key, cancellation) => {
        const call = calls.get(key);
        if (!call) throw new Error(`no function under way as ${key}`);
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

/** Without fingerprints: a definition that was changed is told by what it does otherwise, in its place. */
const tapedEvent = ({ type, step, worker, attempt, data }: NewEvent) => ({
  type,
  step,
  worker,
  attempt,
  data: 'fingerprint' in data ? { ...data, fingerprint: undefined } : data,
});

/** An output that is an object goes to functions, which may change it. */
const isLastingBatch = ({ events }: Batch): boolean => events.every(({ data }) => isFlat(data));

/** What every event of a batch has in common is said once. */
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
 * The keys of what changes how a run stands. Others see most of that only by what depends on it: a claim of the run that
 * counts no more, or a run that nobody is at work on. What these are now is asked when the effect is: only the run
 * itself changes them before it is done, or time does, which has a key of its own.
 */
function runKeys({ store, clock }: Pick<Environment, 'store' | 'clock'>) {
  const claims = (runId: string): readonly string[] => keysOfClaims(store, runId);

  /** Whoever lets its lease run out, and goes on, takes back what was abandoned. */
  const isOut = (runId: string): boolean => {
    const owner = store.glance?.ownerOf(runId);
    return !owner || toEpochMs(owner.expiresAt) <= clock.now();
  };
  const abandoned = (runId: string, isLeft: boolean): readonly string[] =>
    isLeft || isOut(runId) ? [`abandoned:${runId}`] : [];

  return {
    create: ({ runId }: { readonly runId: string }): Keys => ({
      writes: [`store:${runId}`, `lease:${runId}`, `status:${runId}`],
    }),

    acquire: ({ runId }: { readonly runId: string }): Keys => ({
      writes: [`lease:${runId}`, `abandoned:${runId}`],
    }),

    renew: ({ runId }: { readonly runId: string }): Keys => ({
      writes: [`lease:${runId}`, ...abandoned(runId, false)],
    }),

    release: ({ runId, status }: Release): Keys => ({
      writes: [
        `lease:${runId}`,
        ...(status === undefined ? [] : [`status:${runId}`, ...claims(runId)]),
        ...abandoned(runId, status === undefined || status === 'running'),
      ],
    }),

    append: ({ runId, at, events, consumed = [] }: Batch): Keys => ({
      reads: [`lease:${runId}`],
      writes: [
        `store:${runId}`,
        ...(outcomeOf(events, at) ? [`status:${runId}`, ...claims(runId), ...abandoned(runId, false)] : []),
        ...(consumed.length > 0 ? [`inbox:${runId}`] : []),
      ],
    }),
  };
}

/** Of the claims that a run has; of all where that cannot be told at once. */
export const keysOfClaims = ({ glance }: Pick<EventStore, 'glance'>, runId: string): readonly string[] =>
  glance ? glance.tasksOf(runId).map(task => `claim:${task}`) : ['claim:'];
