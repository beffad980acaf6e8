import {
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  renameSync,
  rmdirSync,
  rmSync,
  statSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { basename, dirname, join, resolve } from 'node:path';
import { RepriseError } from '../../core/errors.ts';
import type { HistoryEvent } from '../../core/events.ts';
import { secretsOf } from '../../effects/redact/secrets.ts';
import { withoutThoughts } from '../../engine/recording/encode.ts';
import type { PinnedBase } from '../../engine/step/base.ts';
import { createGit } from '../../git/git.ts';
import { exitCodes } from '../../project/exit-codes.ts';
import { type CommandIo, writeLines } from '../../project/host.ts';
import { projectRedactor } from '../../project/journal/run-journal.ts';
import { findProject, type Project, type ProjectOptions } from '../../project/project.ts';
import { ownershipOf, selectRun, standingStatus, withStoredRuns } from '../../project/runs.ts';
import type { EventStore } from '../../store/port.ts';
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
import { landingsOf, refuseOthers, withWhatWasDone, withWhatWasLeft } from './checks.ts';
import {
  type CutLeg,
  cutLeg,
  joinActivities,
  joinLegs,
  type Leg,
  type Lineage,
  legsOfRun,
  refused,
} from './legs.ts';
import { writeWorkerCase } from './worker.ts';

interface CaptureCommandOptions extends ProjectOptions {
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

export interface Capture {
  readonly io: CommandIo;
  readonly context: TestContext;
  readonly project: Project;
  readonly legs: readonly Leg[];
  /** Of the run that is captured. */
  readonly history: readonly HistoryEvent[];
  readonly description: string;
  /** Where the case will be, if all goes well. */
  readonly place: FoundCase;
}

/** Makes a case in a folder of its own and replays it there. Throws CAPTURE_REFUSED, SECRET_LEAKED. */
async function captureInto(folder: string, capture: Capture): Promise<void> {
  const objectsDir = mkdtempSync(join(tmpdir(), 'reprise-capture-'));
  try {
    const write = capture.legs[0]?.command === 'worker' ? writeWorkerCase : writeCase;
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
  const base = baseOf(capture.legs);
  const repository = base ? await repositoryOf(project, io) : undefined;
  const resolved = await Promise.all(
    capture.legs.map((leg, index) =>
      withWhatWasDone(leg, { later: capture.legs.slice(index + 1), events: history.length, repository }),
    ),
  );
  const cut = resolved.map(cutLeg).filter(leg => leg !== undefined);
  const legs = await withWhatWasLeft(cut, repository);
  const [first] = legs;
  if (!first) throw refused('the process died before it had done anything', 'there is nothing to capture');
  refuseOthers(legs, { base, history });
  for (const { folder: journal } of legs) copyObjects(journal, objectsDir);
  const activities = joinActivities(legs).map(withoutThoughts);
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
      recording: joinLegs(legs),
      activities,
      objectsDir,
      repository,
      base: base?.commit ?? '',
      redactor,
      made: await madeNow(createGit({ cwd: project.root, inheritEnv: io.env }), context),
      main: base ? { ref: `refs/heads/${base.ref}`, commit: lastLanded(legs) ?? base.commit } : null,
      steps: legs.map(({ step }) => step),
      files: packed,
    },
    folder,
  );
  writeFileSync(
    join(folder, `${place.name}.toml`),
    redactor.text(caseText({ description, legs, base: caseBase, files })),
  );
  const leaks = await scanForLeaks({
    folder,
    secrets: secretsOf(io.env),
    paths: [{ name: 'repo', path: project.root }],
    objects: [objectsDir, ...(repository ? [join(repository.commonDir, 'objects')] : [])],
  });
  if (leaks.length > 0) throw leakError(leaks);
}

/** What was checked out when the run began, if it worked with git. */
const baseOf = (legs: readonly Leg[]): PinnedBase | undefined => {
  const outcome = legs[0]?.entries.find(({ op }) => op === 'git.base')?.outcome;
  return outcome?.kind === 'ok' ? (outcome.value as PinnedBase) : undefined;
};

const lastLanded = (legs: readonly CutLeg[]): string | undefined =>
  legs.flatMap(landingsOf).findLast(({ kind }) => kind === 'moved')?.commit;

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
    ['the run does not replay as it went, so no case was made of it', ...shown.map(line => `  ${line}`)].join(
      '\n',
    ),
    'what a run does outside of its workspaces, its store and git is not in its journal; keep such things in a step that a case can serve',
  );
}

/** Where the case will be. Throws USAGE, and CAPTURE_REFUSED if something is there. */
function placeOfCase(
  id: string,
  { cwd, force }: { readonly cwd: string; readonly force: boolean },
): FoundCase {
  const segments = id.split('/');
  if (!segments.every(segment => /^[A-Za-z0-9_][\w-]*$/.test(segment))) {
    throw new RepriseError('USAGE', `a case cannot be named ${JSON.stringify(id)}`, {
      hint: 'use letters, digits, - and _, with a group before it if you like: landing/lost_race',
    });
  }
  const root = resolve(cwd, 'cases');
  const name = segments.at(-1) ?? '';
  const folder = join(root, ...segments);
  for (let length = 1; length < segments.length; length++) {
    const outer = segments.slice(0, length);
    if (isCase(join(root, ...outer)))
      throw refused(
        `cases/${outer.join('/')} is a case itself, and cannot hold others`,
        'choose another name',
      );
  }
  const display = `cases/${id}`;
  if (existsSync(folder) && !isCase(folder) && !isEmpty(folder))
    throw refused(`${display} is there already, and is no case`, 'choose another name');
  if (isCase(folder) && !force)
    throw refused(`there is a case ${id} already`, 'choose another name, or replace it with --force');
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
