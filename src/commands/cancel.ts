import { setTimeout as delay } from 'node:timers/promises';
import { RepriseError, toTimestamp } from '../core/index.ts';
import {
  type CommandIo,
  type ExitCode,
  exitCodes,
  findProject,
  hasEnded,
  loadRecordedDefinition,
  openEngine,
  ownershipOf,
  type Project,
  type ProjectOptions,
  requireNotEnded,
  selectRun,
  userName,
  withStoredRuns,
  writeLines,
} from '../project/index.ts';
import type { EventStore, RunSummary } from '../store/index.ts';

interface CancelCommandOptions extends ProjectOptions {
  readonly run: string;
  readonly reason?: string | undefined;
  /** Whether to wait until the run has ended. Defaults to `true`. */
  readonly wait?: boolean | undefined;
  readonly timeoutMs?: number | undefined;
}

interface CancelContext {
  readonly io: CommandIo;
  readonly project: Project;
  readonly store: EventStore;
  readonly run: RunSummary;
  readonly options: CancelCommandOptions;
}

const defaultTimeoutMs = 30_000;

/** Cancels a run through its owner, or in this process if it has none. Throws RUN_ENDED. */
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
    return ownershipOf(run, project).kind === 'held' ? waitForOwner(cancellation) : endHere(cancellation);
  });
}

async function waitForOwner(cancellation: CancelContext): Promise<ExitCode> {
  const { io, project, store, run, options } = cancellation;
  const hint = `see its status: reprise show ${run.runId}${project.commandSuffix}`;
  const { runId, owner } = run;
  const who = owner ? `process ${owner.pid} on ${owner.host}` : 'its process';
  if (options.wait === false) {
    writeLines(io.err, `asked ${who} to cancel run ${runId}; ${hint}`);
    return exitCodes.ok;
  }
  const timeoutMs = options.timeoutMs ?? defaultTimeoutMs;
  const end = await waitForEnd({ io, project, store, runId, timeoutMs });
  if (!end) {
    writeLines(io.err, `${who} has not ended run ${runId} yet; ${hint}`);
    return exitCodes.failed;
  }
  // The owner exited or died before it read the message.
  return hasEnded(end) ? reportEnd(cancellation, end) : endHere({ ...cancellation, run: end });
}

/** Resumes the run, which reads the cancel message from its inbox before it runs any step. */
async function endHere(cancellation: CancelContext): Promise<ExitCode> {
  const { io, project, store, run } = cancellation;
  const { runId } = run;
  try {
    const { model: workflow } = await loadRecordedDefinition(await store.read(runId), { project, io });
    const { engine } = await openEngine({ ...project, env: io.env, store });
    const { status } = await engine.resume({ workflow, runId });
    return reportEnd(cancellation, { runId, status });
  } catch (thrown) {
    if (!(thrown instanceof RepriseError)) throw thrown;
    if (thrown.code === 'RUN_OWNED') return waitForOwner(cancellation);
    if (thrown.code === 'HISTORY_INVALID') return endUnreadable(cancellation, thrown);
    if (!needsDefinition.has(thrown.code)) throw thrown;
    writeLines(
      io.err,
      `${thrown.message}\nrun ${runId} will be cancelled when it is resumed: reprise resume ${runId}${project.commandSuffix}`,
    );
    return exitCodes.ok;
  }
}

/** Ends a run that no engine can read. */
async function endUnreadable(cancellation: CancelContext, reason: RepriseError): Promise<ExitCode> {
  const { io, project, store, run } = cancellation;
  const { engine } = await openEngine({ ...project, env: io.env, store });
  await engine.quarantine(run.runId);
  writeLines(io.err, `${reason.message}\nrun ${run.runId} was marked as failed; its history is kept`);
  return exitCodes.ok;
}

const needsDefinition: ReadonlySet<string> = new Set([
  'WORKFLOW_NOT_FOUND',
  'DEFINITION_INVALID',
  'DEFINITION_CHANGED',
  'HISTORY_DIVERGED',
]);

function reportEnd(
  { io, project: { commandSuffix } }: CancelContext,
  { runId, status }: Pick<RunSummary, 'runId' | 'status'>,
): ExitCode {
  if (status === 'cancelled') {
    writeLines(
      io.err,
      `cancelled run ${runId}; to continue it later: reprise resume ${runId}${commandSuffix}`,
    );
    return exitCodes.ok;
  }
  writeLines(
    io.err,
    `run ${runId} ended as ${status} before it could be cancelled; see what happened: reprise show ${runId}${commandSuffix}`,
  );
  return exitCodes.failed;
}

const pollMs = 50;

interface WaitOptions {
  readonly io: CommandIo;
  readonly project: Project;
  readonly store: EventStore;
  readonly runId: string;
  readonly timeoutMs: number;
}

/** Resolves with the run once it has ended or has no live owner, or with `undefined` after the timeout. */
async function waitForEnd(options: WaitOptions): Promise<RunSummary | undefined> {
  const { io, project, store, runId, timeoutMs } = options;
  const giveUpAt = io.now() + timeoutMs;
  for (;;) {
    const run = (await store.find(runId)).find(found => found.runId === runId);
    if (run && (hasEnded(run) || ownershipOf(run, project).kind !== 'held')) return run;
    if (io.now() >= giveUpAt || io.interrupt.aborted) return undefined;
    await delay(pollMs);
  }
}
