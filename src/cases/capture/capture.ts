import {
  cpSync,
  existsSync,
  mkdirSync,
  readdirSync,
  renameSync,
  rmSync,
  statSync,
  writeFileSync,
} from 'node:fs';
import { basename, dirname, join, resolve } from 'node:path';
import { type HistoryEvent, RepriseError } from '../../core/index.ts';
import { secretsOf } from '../../effects/redact/index.ts';
import { withoutThoughts } from '../../engine/recording/index.ts';
import type { PinnedBase } from '../../engine/step/index.ts';
import { createGit } from '../../git/index.ts';
import { removeLeftovers, temporaryFolder } from '../../process/index.ts';
import {
  type CommandIo,
  exitCodes,
  findProject,
  ownershipOf,
  type Project,
  type ProjectOptions,
  selectRun,
  shownStatus,
  withStoredRuns,
  writeLines,
} from '../../project/index.ts';
import { projectRedactor, stagingFolder } from '../../project/journal/index.ts';
import type { EventStore } from '../../store/index.ts';
import { madeNow, type TestContext } from '../context.ts';
import { type FoundCase, idOf } from '../manifest/find.ts';
import { readCase } from '../manifest/load.ts';
import type { CaseBase } from '../manifest/manifest.ts';
import { distil } from '../record/distil.ts';
import { leakError, scanForLeaks } from '../record/leak-scan.ts';
import { replayCase, snapshotFile } from '../replay/replay.ts';
import { failureLines } from '../reporters/default.ts';
import type { CaseFailure } from '../result.ts';
import { copyObjects, filesBesideBase, repositoryOf, writeBase } from './base.ts';
import { caseText } from './case-text.ts';
import { landingsOf, refuseOthers, withLaterEvents, withLeftovers } from './checks.ts';
import {
  type CutSegment,
  cutSegment,
  joinActivities,
  joinSegments,
  type Lineage,
  marksOfSegments,
  type RunSegment,
  refused,
  runAgain,
  segmentsOfRun,
} from './segments.ts';
import { writeWorkerCase } from './worker.ts';

interface CaptureCommandOptions extends ProjectOptions {
  /** Run id, or a prefix of it. */
  readonly run: string;
  /** `name` or `group/name`. */
  readonly name: string;
  readonly force?: boolean | undefined;
}

/** Turns a journalled run into a test case. Leaves no files behind if it fails. */
export async function captureCommand(
  { io, context }: { readonly io: CommandIo; readonly context: TestContext },
  { run: reference, name, force = false, ...options }: CaptureCommandOptions,
): Promise<number> {
  const project = findProject(io, options);
  const place = placeOfCase(name, { cwd: io.cwd, force });
  const { run, history, lineage } = await withStoredRuns({ project, mode: 'readonly' }, async store => {
    const run = await selectRun(store, reference);
    if (ownershipOf(run, project).kind === 'held') {
      throw refused(
        `run ${run.runId} is still running`,
        `wait for it to end, or cancel it: reprise cancel ${run.runId}${project.commandSuffix}`,
      );
    }
    return { run, history: await store.read(run.runId), lineage: await lineageOf(store, run.runId) };
  });
  const segments = await segmentsOfRun(project.stateDir, lineage);
  const description = `Run ${run.runId} of ${run.workflow}, status ${shownStatus(run, project)}.`;
  // A case appears in `cases/`, where it is committed, only after the search for secrets.
  const staging = stagingFolder(project.stateDir);
  removeLeftovers(staging);
  removeLeftovers();
  const workplace = temporaryFolder('capturing', staging);
  try {
    const folder = join(workplace, place.name);
    mkdirSync(folder);
    await captureInto(folder, { io, context, project, segments, history, description, place });
    moveInto(place.folder, folder);
  } finally {
    rmSync(workplace, { recursive: true, force: true });
  }
  const id = idOf(place);
  writeLines(
    io.err,
    `captured run ${run.runId} as ${dirname(place.displayFile)}; replay it: reprise test ${id}`,
  );
  return exitCodes.ok;
}

async function lineageOf(store: EventStore, runId: string): Promise<Lineage> {
  const [started] = await store.read(runId);
  const source = started?.type === 'run.started' ? started.data.forkedFrom?.run : undefined;
  return { runId, ...(source === undefined ? {} : { forkedFrom: await lineageOf(store, source) }) };
}

function moveInto(place: string, from: string): void {
  mkdirSync(dirname(place), { recursive: true });
  rmSync(place, { recursive: true, force: true });
  try {
    renameSync(from, place);
  } catch (error) {
    // The state folder is on another file system.
    if ((error as NodeJS.ErrnoException).code !== 'EXDEV') throw error;
    cpSync(from, place, { recursive: true });
  }
}

export interface Capture {
  readonly io: CommandIo;
  readonly context: TestContext;
  readonly project: Project;
  readonly segments: readonly RunSegment[];
  /** History of the captured run. */
  readonly history: readonly HistoryEvent[];
  readonly description: string;
  /** Location of the new case. */
  readonly place: FoundCase;
}

/** Writes the case into `folder` and replays it there. Throws CAPTURE_REFUSED, SECRET_LEAKED. */
async function captureInto(folder: string, capture: Capture): Promise<void> {
  const objectsDir = temporaryFolder('capture');
  try {
    const write = capture.segments[0]?.command === 'worker' ? writeWorkerCase : writeCase;
    await write(folder, { ...capture, objectsDir });
  } finally {
    rmSync(objectsDir, { recursive: true, force: true });
  }
  await takeSnapshot({ ...capture.place, folder, file: join(folder, `${capture.place.name}.toml`) }, capture);
}

async function writeCase(
  folder: string,
  { objectsDir, ...capture }: Capture & { readonly objectsDir: string },
): Promise<void> {
  const { io, context, project, history, description, place } = capture;
  const base = baseOf(capture.segments);
  const repository = base ? await repositoryOf(project, io) : undefined;
  const resolved = await Promise.all(
    capture.segments.map((segment, index) =>
      withLaterEvents(segment, {
        later: capture.segments.slice(index + 1),
        events: history.length,
        repository,
      }),
    ),
  );
  const cut = resolved.map(cutSegment).filter(segment => segment !== undefined);
  const segments = await withLeftovers(cut, repository);
  const [first] = segments;
  if (!first)
    throw refused('the process died before its first effect ended, so there is nothing to capture', runAgain);
  refuseOthers(segments, { base, history });
  for (const { folder: journal } of segments) copyObjects(journal, objectsDir);
  const activities = joinActivities(segments).map(withoutThoughts);
  const redactor = projectRedactor(project, io);
  let packed: Readonly<Record<string, string>> = {};
  let caseBase: CaseBase | undefined;
  let files = first.files;
  if (base && repository) {
    const written = await writeBase(folder, { repository, objectsDir, base, activities });
    packed = written.packed;
    caseBase = written.base;
    files = await filesBesideBase(files, { repository, base, redactor });
  }
  await distil(
    {
      case: place.name,
      recording: joinSegments(segments),
      activities,
      objectsDir,
      repository,
      base: base?.commit ?? '',
      redactor,
      made: await madeNow(createGit({ cwd: project.root, inheritEnv: io.env }), context),
      main: base ? { ref: `refs/heads/${base.ref}`, commit: lastLanded(segments) ?? base.commit } : null,
      steps: segments.map(({ step }) => step),
      files: packed,
    },
    folder,
  );
  writeFileSync(
    join(folder, `${place.name}.toml`),
    redactor.text(caseText({ description, segments, base: caseBase, files })),
  );
  const leaks = await scanForLeaks({
    folder,
    secrets: secretsOf(io.env),
    marks: marksOfSegments(segments),
    paths: [{ name: 'repo', path: project.root }],
    objects: [objectsDir, ...(repository ? [join(repository.commonDir, 'objects')] : [])],
  });
  if (leaks.length > 0) throw leakError(leaks);
}

/** Returns the branch and commit that were checked out when the run started, if the run used git. */
const baseOf = (segments: readonly RunSegment[]): PinnedBase | undefined => {
  const outcome = segments[0]?.entries.find(({ op }) => op === 'git.base')?.outcome;
  return outcome?.kind === 'ok' ? (outcome.value as PinnedBase) : undefined;
};

const lastLanded = (segments: readonly CutSegment[]): string | undefined =>
  segments.flatMap(landingsOf).findLast(({ kind }) => kind === 'moved')?.commit;

async function takeSnapshot(found: FoundCase, { context }: Capture): Promise<void> {
  const { failures, snapshot } = await replayCase(found, readCase(found), context);
  if (failures.length > 0 || snapshot === undefined) throw doesNotReplay(found, failures);
  writeFileSync(snapshotFile(found), snapshot);
}

function doesNotReplay({ name, group }: FoundCase, failures: readonly CaseFailure[]) {
  const result = {
    name,
    group,
    file: '',
    status: 'failed',
    durationMs: 0,
    failures,
    notes: [],
    steps: [],
  } as const;
  const shown = failures.flatMap(({ hint: _, ...failure }) =>
    failureLines(result, failure, (_colour, text) => text).filter(line => !/^\s*hint: /.test(line)),
  );
  return refused(
    [
      'the recording of the run does not replay, so no case was written',
      ...shown.map(line => `  ${line}`),
    ].join('\n'),
    'a journal only records what a run does in its workspaces, its store and git; move anything else into a script or agent step, whose result is recorded',
  );
}

/** Returns the location of the new case. Throws USAGE for an invalid name, and CAPTURE_REFUSED if it is taken. */
function placeOfCase(
  id: string,
  { cwd, force }: { readonly cwd: string; readonly force: boolean },
): FoundCase {
  const segments = id.split('/');
  if (!segments.every(segment => /^[A-Za-z0-9_][\w-]*$/.test(segment))) {
    throw new RepriseError('USAGE', `invalid case name ${JSON.stringify(id)}`, {
      hint: 'use letters, digits, - and _, optionally after a group: landing/lost_race',
    });
  }
  const root = resolve(cwd, 'cases');
  const name = segments.at(-1) ?? '';
  const folder = join(root, ...segments);
  for (let length = 1; length < segments.length; length++) {
    const outer = segments.slice(0, length);
    if (isCase(join(root, ...outer)))
      throw refused(
        `cases/${outer.join('/')} is a case itself and cannot contain other cases`,
        'choose another name',
      );
  }
  const display = `cases/${id}`;
  if (existsSync(folder) && !isCase(folder) && !isEmpty(folder))
    throw refused(`${display} already exists and is not a case`, 'choose another name');
  if (isCase(folder) && !force)
    throw refused(`case ${id} already exists`, 'choose another name, or pass --force to replace it');
  return {
    name,
    group: segments.slice(0, -1).join('/'),
    folder,
    file: join(folder, `${name}.toml`),
    displayFile: `${display}/${name}.toml`,
  };
}

const isCase = (folder: string): boolean => existsSync(join(folder, `${basename(folder)}.toml`));

const isEmpty = (folder: string): boolean =>
  statSync(folder).isDirectory() && readdirSync(folder).length === 0;
