import { existsSync, mkdirSync, mkdtempSync, readdirSync, renameSync, rmdirSync, rmSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { captureInto } from '../cases/capture/capture.ts';
import { type Lineage, legsOfRun } from '../cases/capture/legs.ts';
import type { TestContext } from '../cases/context.ts';
import { idOf } from '../cases/manifest/find.ts';
import { exitCodes } from '../project/exit-codes.ts';
import { type CommandIo, writeLines } from '../project/host.ts';
import { findProject, type ProjectOptions } from '../project/project.ts';
import { ownershipOf, selectRun, standingStatus, withStoredRuns } from '../project/runs.ts';
import type { EventStore } from '../store/port.ts';
import { placeOfCase } from './capture/place.ts';
import { refused } from './capture/refusal.ts';

export interface CaptureCommandOptions extends ProjectOptions {
  /** The id or its beginning. */
  readonly run: string;
  /** `name` or `group/name`. */
  readonly name: string;
  readonly force?: boolean | undefined;
}

/** Makes a test case of a run that was journalled. Leaves nothing behind if it cannot. */
export async function captureCommand(
  { io, context }: { readonly io: CommandIo; readonly context: TestContext },
  { run: reference, name, force = false, ...options }: CaptureCommandOptions,
): Promise<number> {
  const project = findProject(io, options);
  const place = placeOfCase(name, { cwd: io.cwd, force });
  const { run, history, lineage } = await withStoredRuns({ project, mode: 'readonly' }, async store => {
    const run = await selectRun(store, reference);
    if (ownershipOf(run, io.now()).kind === 'held') {
      throw refused(
        `run ${run.runId} is still going on`,
        `wait for its end, or end it: reprise cancel ${run.runId}${project.commandSuffix}`,
      );
    }
    return { run, history: await store.read(run.runId), lineage: await lineageOf(store, run.runId) };
  });
  const legs = await legsOfRun(project.stateDir, lineage);
  const description = `Run ${run.runId} of ${run.workflow}, which was ${standingStatus(run, io.now())}.`;
  const made = mkdirSync(dirname(place.folder), { recursive: true });
  const workplace = mkdtempSync(join(dirname(place.folder), '.capturing-'));
  try {
    const folder = join(workplace, place.name);
    mkdirSync(folder);
    await captureInto(folder, { io, context, project, legs, history, description, place });
    if (existsSync(place.folder)) rmSync(place.folder, { recursive: true });
    renameSync(folder, place.folder);
  } finally {
    rmSync(workplace, { recursive: true, force: true });
    if (made !== undefined) removeEmpty(dirname(place.folder), made);
  }
  const id = idOf(place);
  writeLines(
    io.err,
    `captured run ${run.runId} as ${dirname(place.displayFile)}; play it: reprise test ${id}`,
  );
  return exitCodes.ok;
}

async function lineageOf(store: EventStore, runId: string): Promise<Lineage> {
  const [started] = await store.read(runId);
  const source = started?.type === 'run.started' ? started.data.forkedFrom?.run : undefined;
  return { runId, ...(source === undefined ? {} : { forkedFrom: await lineageOf(store, source) }) };
}

/** The folders from `folder` up to `top`, as far as nothing is in them. */
function removeEmpty(folder: string, top: string): void {
  for (let at = folder; at.startsWith(top) && readdirSync(at).length === 0; at = dirname(at)) rmdirSync(at);
}
