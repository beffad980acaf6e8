import { toTimestamp } from '../core/time.ts';
import { type ExitCode, exitCodes } from '../project/exit-codes.ts';
import { type CommandIo, writeLines } from '../project/host.ts';
import { userName } from '../project/identity.ts';
import { findProject, type ProjectOptions } from '../project/project.ts';
import { requireNotEnded, selectRun, withStoredRuns } from '../project/runs.ts';
import { jsonOrText } from './inputs.ts';
import { whatHappensNext } from './what-happens-next.ts';

export interface SignalCommandOptions extends ProjectOptions {
  readonly run: string;
  readonly name: string;
  /** JSON; anything else is taken as text. */
  readonly payload?: string | undefined;
}

/** Sends a signal to a run; one that nobody waits for yet is kept. Throws RUN_ENDED. */
export async function signalCommand(
  { io }: { readonly io: CommandIo },
  options: SignalCommandOptions,
): Promise<ExitCode> {
  const { name, payload: text } = options;
  const project = findProject(io, options);
  return withStoredRuns({ project, mode: 'writable' }, async store => {
    const run = await selectRun(store, options.run);
    requireNotEnded(run, 'signal');
    const payload = text === undefined ? null : jsonOrText(text);
    const by = userName(io);
    await store.post(
      run.runId,
      { kind: 'signal', name, payload, ...(by ? { by } : {}) },
      toTimestamp(io.now()),
    );
    writeLines(io.err, `sent ${name} to run ${run.runId}; ${whatHappensNext(run, { io, project })}`);
    return exitCodes.ok;
  });
}
