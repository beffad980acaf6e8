import type { NewEvent, Timestamp } from '../core/index.ts';
import {
  byTask,
  type Claim,
  type ClaimDecision,
  type ClaimStore,
  decideClaim,
  decideSettlement,
  isHeldBy,
} from './claims.ts';
import {
  type ChildRecord,
  type EventStore,
  type Fence,
  type RunQuery,
  type RunStatus,
  type RunSummary,
  topProject,
} from './port.ts';
import {
  byStart,
  checkBatch,
  checkLease,
  currentHolder,
  type EventRow,
  holds,
  type InboxRow,
  type LeaseHolder,
  outcomeOf,
  runIdTaken,
  runNotFound,
  toEventRow,
  toHistory,
  toInboxEntry,
  type WorkerRecord,
  type WorkerRegistry,
} from './runs.ts';

interface Run {
  readonly runId: string;
  readonly project: string;
  readonly workflow: string;
  readonly startedAt: Timestamp;
  status: RunStatus;
  endedAt: Timestamp | null;
  epoch: number;
  holder: LeaseHolder | null;
  readonly events: EventRow[];
  inbox: InboxRow[];
  readonly processes: Map<number, ChildRecord>;
}

/** Everything that a store in memory holds, of all projects. */
class Memory {
  readonly runs = new Map<string, Run>();
  readonly claims = new Map<string, KeptClaim>();
  readonly workers = new Map<string, WorkerRecord>();
  lastInboxId = 0;
  revision = 0;
}

type KeptClaim = Claim & { readonly project: string };

/**
 * Store in memory, lost when the process ends. Payloads are kept as JSON text, so a read returns the same copy as a
 * store on disk would. `project` is `null` for all projects.
 */
export const memoryStore = (project?: string | null): EventStore => memoryStores()(project);

/** Returns a function that opens one store in memory for any of its projects. */
export function memoryStores(): (project?: string | null) => EventStore {
  const memory = new Memory();
  return project => storeIn(memory, project);
}

function storeIn(memory: Memory, project: string | null = topProject): EventStore {
  const { runs } = memory;
  const own = project ?? topProject;
  const isListed = (of: { readonly project?: string | undefined }) => project === null || of.project === own;
  const toSummary = (run: Run): RunSummary =>
    project === null ? { ...summaryOf(run), project: run.project } : summaryOf(run);

  const runWith = (runId: string): Run => {
    const run = runs.get(runId);
    if (!run) throw runNotFound(runId);
    return run;
  };

  const claims = memoryClaims(memory, {
    project,
    statusOf: runId => runWith(runId).status,
    check: ({ runId, lease }) => checkLease(runId, leaseStateOf(runWith(runId)), lease),
  });

  const workers = memoryWorkers(memory, project);

  const followedByClaims = (run: Run, change: () => void): void => {
    const before = run.status;
    change();
    if (run.status !== before) claims.followRun(run.runId);
  };

  // The map is in order of creation, and sorting is stable: of runs with equal times the newest comes first.
  const newestFirst = (): Run[] =>
    [...runs.values()]
      .filter(isListed)
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
        project: own,
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
      const held = currentHolder(run.holder, request);
      if (held) return held;
      run.epoch += 1;
      run.holder = { ...request.owner, expiresAt: request.expiresAt };
      return { kind: 'acquired', lease: { epoch: run.epoch, incarnation: request.owner.incarnation } };
    },

    async renew(runId, lease, expiresAt) {
      const run = runs.get(runId);
      if (!run?.holder || !holds(leaseStateOf(run), lease)) return false;
      run.holder = { ...run.holder, expiresAt };
      return true;
    },

    async release(runId, lease, status) {
      const run = runs.get(runId);
      if (!run || !holds(leaseStateOf(run), lease)) return;
      run.holder = null;
      followedByClaims(run, () => {
        run.status = status ?? run.status;
      });
    },

    async holdsRun(runId, lease) {
      const run = runs.get(runId);
      return run !== undefined && holds(leaseStateOf(run), lease);
    },

    async append(batch) {
      const run = runWith(batch.runId);
      checkBatch(batch, leaseStateOf(run));
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

    async post(runId, message, at, seen) {
      const run = runWith(runId);
      const lastEntry = run.inbox.at(-1)?.id ?? 0;
      if (seen && (seen.lastSeq !== run.events.length || seen.lastEntry !== lastEntry)) return false;
      memory.lastInboxId += 1;
      run.inbox.push({ id: memory.lastInboxId, at, message: JSON.stringify(message) });
      return true;
    },

    async inbox(runId) {
      return (runs.get(runId)?.inbox ?? []).map(row => toInboxEntry(runId, row));
    },

    async addProcess(runId, lease, { pid, processStart, step }) {
      const run = runWith(runId);
      checkLease(runId, leaseStateOf(run), lease);
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
  // Check and serialize all events before storing the first: one that is malformed must not leave half a batch.
  const { runId } = run;
  const rows = events.map((event, index) =>
    toEventRow(event, { runId, seq: run.events.length + index + 1, at }),
  );
  for (const row of rows) run.events.push(row);
  Object.assign(run, outcomeOf(events, at));
}

const leaseStateOf = ({ epoch, holder, events }: Run) => ({
  epoch,
  incarnation: holder?.incarnation ?? null,
  lastSeq: events.length,
});

const suspensionIn = (events: readonly EventRow[]): Pick<RunSummary, 'suspension'> => {
  const row = events.findLast(([, , type]) => type === 'run.suspended');
  return row ? { suspension: JSON.parse(row[6]) } : {};
};

const summaryOf = ({
  runId,
  workflow,
  status,
  startedAt,
  endedAt,
  epoch,
  holder,
  events,
}: Run): RunSummary => ({
  runId,
  workflow,
  status,
  startedAt,
  endedAt,
  ...(status === 'suspended' ? suspensionIn(events) : {}),
  owner: holder && { ...holder, epoch },
});

interface Runs {
  readonly project: string | null;
  /** Throws RUN_NOT_FOUND. */
  readonly statusOf: (runId: string) => RunStatus;
  /** Throws FENCED, RUN_NOT_FOUND. */
  readonly check: (fence: Fence) => void;
}

/** Claims in memory. */
function memoryClaims(memory: Memory, { project, statusOf, check }: Runs) {
  const { claims } = memory;
  const own = project ?? topProject;

  const asOfNow = ({ project: itsProject, ...claim }: KeptClaim): Claim => ({
    ...claim,
    ...(project === null && { project: itsProject }),
    runStatus: claim.runId === null || claim.state !== 'held' ? null : statusOf(claim.runId),
  });
  const heldBy = (runId: string): readonly Claim[] =>
    [...claims.values()].filter(claim => claim.runId === runId && claim.state === 'held');
  const current = (task: string): Claim | undefined => {
    const claim = claims.get(`${own}\0${task}`);
    return claim && asOfNow(claim);
  };
  const carryOut = <Answer>({ answer, kept }: ClaimDecision<Answer>): Answer => {
    if (kept) {
      claims.set(`${own}\0${kept.task}`, { ...kept, project: own });
      memory.revision += 1;
    }
    return answer;
  };

  const store: ClaimStore = {
    async take(request) {
      if (request.fence) check(request.fence);
      const runStatus = request.runId === null ? null : statusOf(request.runId);
      return carryOut(decideClaim(current(request.task), request, runStatus));
    },

    async settle(settlement) {
      if (settlement.fence) check(settlement.fence);
      return carryOut(decideSettlement(current(settlement.task), settlement));
    },

    async list() {
      const listed = [...claims.values()].filter(claim => project === null || claim.project === own);
      return listed.map(asOfNow).sort(byTask);
    },

    async isHeld(claim) {
      return isHeldBy(current(claim.task), claim);
    },

    async revision() {
      return memory.revision;
    },
  };

  return {
    store,
    revision: () => memory.revision,
    tasksOf: (runId: string) =>
      heldBy(runId)
        .map(({ task }) => task)
        .sort(),
    /** Must be called when the status of a run has changed. */
    followRun(runId: string): void {
      if (heldBy(runId).length > 0) memory.revision += 1;
    },
  };
}

/** Worker registry in memory. Stores and returns copies. */
function memoryWorkers({ workers }: Memory, project: string | null) {
  const own = project ?? topProject;
  const shown = ({ project: itsProject, ...worker }: WorkerRecord): WorkerRecord =>
    project === null ? { ...worker, project: itsProject } : worker;
  const list = (): readonly WorkerRecord[] =>
    [...workers.values()]
      .filter(worker => project === null || worker.project === own)
      .map(shown)
      .sort(byStart);
  const registry: WorkerRegistry = {
    async put(worker) {
      workers.set(worker.incarnation, copyOf({ ...worker, project: own }));
    },

    async remove(incarnation) {
      workers.delete(incarnation);
    },

    async list() {
      return list();
    },
  };
  return { registry, list };
}

/** Flat copy without undefined fields, as a store on disk would return. */
function copyOf(worker: WorkerRecord): WorkerRecord {
  const copy: Record<string, unknown> = {};
  for (const [field, value] of Object.entries(worker)) if (value !== undefined) copy[field] = value;
  return copy as unknown as WorkerRecord;
}
