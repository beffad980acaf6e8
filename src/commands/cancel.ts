import { setTimeout as delay } from 'node:timers/promises';
import { RepriseError } from '../core/errors.ts';
import { toTimestamp } from '../core/time.ts';
import { loadRecordedDefinition } from '../project/definitions.ts';
import { type ExitCode, exitCodes } from '../project/exit-codes.ts';
import { type CommandIo, writeLines } from '../project/host.ts';
import { userName } from '../project/identity.ts';
import { openEngine } from '../project/open-engine.ts';
import { findProject, type Project, type ProjectOptions } from '../project/project.ts';
import { hasEnded, ownershipOf, requireNotEnded, selectRun, withStoredRuns } from '../project/runs.ts';
import type { EventStore, RunSummary } from '../store/port.ts';

interface CancelCommandOptions extends ProjectOptions {
  readonly run: string;
  readonly reason?: string | undefined;
  /** Whether to stay until the run has ended; `true` by default. */
  readonly wait?: boolean | undefined;
  readonly timeoutMs?: number | undefined;
}

interface Cancellation {
  readonly io: CommandIo;
  readonly project: Project;
  readonly store: EventStore;
  readonly run: RunSummary;
  readonly options: CancelCommandOptions;
}

const defaultTimeoutMs = 30_000;

/** Ends a run as cancelled: through its owner, or by itself if it has none. Throws RUN_ENDED. */
export async function cancelCommand(
  { io }: { readonly io: CommandIo },
  options: CancelCommandOptions,
): Promise<ExitCode> {
  const project = findProject(io, options);
  return withStoredRuns({ project, mode: 'writable' }, async store => {
    const run = await selectRun(store, options.run);
    requireNotEnded(run, 'cancel');
    const by = userName(io);
    const reason = options.reason ?? `cancelled${by ? ` by ${by}` : ''}`;
    await store.post(run.runId, { kind: 'cancel', reason, ...(by ? { by } : {}) }, toTimestamp(io.now()));
    const cancellation = { io, project, store, run, options };
    return ownershipOf(run, io.now()).kind === 'held' ? leaveToOwner(cancellation) : endHere(cancellation);
  });
}

async function leaveToOwner(cancellation: Cancellation): Promise<ExitCode> {
  const { io, project, store, run, options } = cancellation;
  const look = `see where it stands: reprise show ${run.runId}${project.commandSuffix}`;
  const { runId, owner } = run;
  const who = owner ? `process ${owner.pid} on ${owner.host}` : 'its process';
  if (options.wait === false) {
    writeLines(io.err, `asked ${who} to cancel run ${runId}; ${look}`);
    return exitCodes.ok;
  }
  const end = await waitForEnd({ io, store, runId, timeoutMs: options.timeoutMs ?? defaultTimeoutMs });
  if (!end) {
    writeLines(io.err, `${who} has not ended run ${runId} yet; ${look}`);
    return exitCodes.failed;
  }
  // The owner left, or died, without having read the message.
  return hasEnded(end) ? sayEnd(cancellation, end) : endHere({ ...cancellation, run: end });
}

/** The message waits in the inbox, and a resume reads that first: nothing else is run. */
async function endHere(cancellation: Cancellation): Promise<ExitCode> {
  const { io, project, store, run } = cancellation;
  const { runId } = run;
  try {
    const { model: workflow } = await loadRecordedDefinition(await store.read(runId), { project, io });
    const { engine } = await openEngine({ ...project, env: io.env, store });
    const { status } = await engine.resume({ workflow, runId });
    return sayEnd(cancellation, { runId, status });
  } catch (thrown) {
    if (!(thrown instanceof RepriseError)) throw thrown;
    if (thrown.code === 'RUN_OWNED') return leaveToOwner(cancellation);
    if (!needsDefinition.has(thrown.code)) throw thrown;
    writeLines(
      io.err,
      `${thrown.message}\nrun ${runId} will be cancelled as soon as it is resumed: reprise resume ${runId}${project.commandSuffix}`,
    );
    return exitCodes.ok;
  }
}

const needsDefinition: ReadonlySet<string> = new Set([
  'WORKFLOW_NOT_FOUND',
  'DEFINITION_INVALID',
  'DEFINITION_CHANGED',
  'HISTORY_DIVERGED',
]);

function sayEnd(
  { io, project: { commandSuffix } }: Cancellation,
  { runId, status }: Pick<RunSummary, 'runId' | 'status'>,
): ExitCode {
  if (status === 'cancelled') {
    writeLines(
      io.err,
      `run ${runId} is cancelled; take it up again: reprise resume ${runId}${commandSuffix}`,
    );
    return exitCodes.ok;
  }
  writeLines(
    io.err,
    `run ${runId} ended ${status} before it could be cancelled; see how it went: reprise show ${runId}${commandSuffix}`,
  );
  return exitCodes.failed;
}

const pollMs = 50;

interface WaitOptions {
  readonly io: CommandIo;
  readonly store: EventStore;
  readonly runId: string;
  readonly timeoutMs: number;
}

/** The run once it has ended or nobody has it any more; `undefined` if the time ran out first. */
async function waitForEnd({ io, store, runId, timeoutMs }: WaitOptions): Promise<RunSummary | undefined> {
  const giveUpAt = io.now() + timeoutMs;
  for (;;) {
    const run = (await store.find(runId)).find(found => found.runId === runId);
    if (run && (hasEnded(run) || ownershipOf(run, io.now()).kind !== 'held')) return run;
    if (io.now() >= giveUpAt || io.interrupt.aborted) return undefined;
    await delay(pollMs);
  }
}
