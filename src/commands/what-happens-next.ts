import type { CommandIo } from '../project/host.ts';
import type { Project } from '../project/project.ts';
import { ownershipOf } from '../project/runs.ts';
import type { RunSummary } from '../store/port.ts';

/** Who takes a message that was left for a run. */
export function whatHappensNext(
  run: RunSummary,
  { io, project }: { readonly io: CommandIo; readonly project: Project },
): string {
  const ownership = ownershipOf(run, io.now());
  return ownership.kind === 'held'
    ? `process ${ownership.owner.pid} on ${ownership.owner.host} goes on with it`
    : `continue with: reprise resume ${run.runId}${project.commandSuffix}`;
}
