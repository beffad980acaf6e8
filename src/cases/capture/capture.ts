import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { HistoryEvent } from '../../core/events.ts';
import { secretsOf } from '../../effects/redact/secrets.ts';
import { withoutThoughts } from '../../engine/recording/encode.ts';
import type { PinnedBase } from '../../engine/step/base.ts';
import { createGit } from '../../git/git.ts';
import type { CommandIo } from '../../project/host.ts';
import { projectRedactor } from '../../project/journal/run-journal.ts';
import type { Project } from '../../project/project.ts';
import { type CutLeg, cutLeg } from '../../testing/capture/cut-leg.ts';
import { joinActivities, joinLegs } from '../../testing/capture/join-legs.ts';
import { withWhatWasLeft } from '../../testing/capture/left-behind.ts';
import { refused } from '../../testing/capture/refusal.ts';
import { withWhatWasDone } from '../../testing/capture/under-way.ts';
import { readCase } from '../../testing/manifest/read-case.ts';
import { failureLines } from '../../testing/reporters/failure-text.ts';
import { madeNow } from '../../testing/versions.ts';
import type { TestContext } from '../context.ts';
import type { FoundCase } from '../manifest/find.ts';
import type { CaseBase } from '../manifest/manifest.ts';
import { distil } from '../record/distil.ts';
import { leakError, scanForLeaks } from '../record/leak-scan.ts';
import { replayCase, snapshotFile } from '../replay/replay.ts';
import type { CaseFailure } from '../result.ts';
import { copyObjects, filesBesideBase, repositoryOf, writeBase } from './base.ts';
import { caseText } from './case-text.ts';
import { landingsOf, refuseOthers } from './checks.ts';
import type { Leg } from './legs.ts';
import { writeWorkerCase } from './worker.ts';

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
export async function captureInto(folder: string, capture: Capture): Promise<void> {
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
