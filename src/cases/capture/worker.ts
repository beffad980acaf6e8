import { mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { HistoryEvent } from '../../core/events.ts';
import { readJournal } from '../../effects/recording/journal-reader.ts';
import { witnessOf } from '../../effects/recording/recording.ts';
import { secretsOf } from '../../effects/redact/secrets.ts';
import { digestsOf } from '../../engine/history/digest.ts';
import { parseSessionFile } from '../../engine/recording/decode.ts';
import { withoutThoughts } from '../../engine/recording/encode.ts';
import { createGit } from '../../git/git.ts';
import { projectRedactor } from '../../project/journal/run-journal.ts';
import { refused } from '../../testing/capture/refusal.ts';
import { type WorkerRun, workerRunOf } from '../../testing/capture/worker-run.ts';
import { readCase } from '../../testing/manifest/read-case.ts';
import { mainOf } from '../../testing/stage-result.ts';
import { madeNow } from '../../testing/versions.ts';
import { stageOf } from '../perform/stage.ts';
import { distil, readActivities } from '../record/distil.ts';
import { leakError, scanForLeaks } from '../record/leak-scan.ts';
import { copyObjects, filesBesideBase, repositoryOf, writeBase } from './base.ts';
import type { Capture } from './capture.ts';
import { type CapturedCase, caseText } from './case-text.ts';
import { type Draft, reenact } from './reenact.ts';

/**
 * Makes a case of what a worker did with one task. A worker lives among others, and does many things before and after;
 * so its tape is no tape of a case. The task is done once more in a repository of its own, by a worker that takes this
 * task only: others are there as far as it saw them, and agents and scripts do what they did. That is what is taped.
 * Throws CAPTURE_REFUSED, SECRET_LEAKED.
 */
export async function writeWorkerCase(
  folder: string,
  capture: Capture & { readonly objectsDir: string },
): Promise<void> {
  const { io, project, place, objectsDir, description } = capture;
  const repository = await repositoryOf(project, io);
  const run = await workerRunOf(capture.legs, repository);
  const { leg, main, branch, moves, claims } = run;
  copyObjects(leg.folder, objectsDir);
  const activities = leg.activities.map(withoutThoughts);
  const base = { commit: main, ref: branch };
  const written = await writeBase(folder, {
    ...{ repository, objectsDir, base, activities },
    moves: moves.map(({ commit }) => commit),
  });
  const redactor = projectRedactor(project, io);
  const files = await filesBesideBase(leg.files, { repository, base, redactor });
  const text: CapturedCase = { description, legs: [leg], base: written.base, files, claims, moves };
  const writeText = (captured: CapturedCase) =>
    writeFileSync(join(folder, `${place.name}.toml`), redactor.text(caseText(captured)));
  writeText(text);
  const workplace = mkdtempSync(join(tmpdir(), 'reprise-again-'));
  try {
    const draft = join(workplace, 'draft');
    mkdirSync(draft);
    await distil(
      {
        case: place.name,
        recording: { entries: [], witness: witnessOf([]) },
        activities,
        objectsDir,
        repository,
        base: main,
        redactor,
        made: await madeNow(createGit({ cwd: project.root, inheritEnv: io.env }), capture.context),
        main: null,
        steps: [],
      },
      draft,
    );
    const exit = await tapeAgain(
      { ...capture, folder, run, packed: written.packed, workplace },
      draftOf(draft),
    );
    writeText({ ...text, legs: [{ ...leg, exit }] });
  } finally {
    rmSync(workplace, { recursive: true, force: true });
  }
}

const draftOf = (folder: string): Draft => {
  const blob = (sha: string) => readFileSync(join(folder, 'blobs', sha));
  const sessions = join(folder, 'sessions');
  const files = readdirSync(folder).includes('sessions') ? readdirSync(sessions) : [];
  return {
    blob,
    sessions: files
      .filter(file => file.endsWith('.jsonl'))
      .map(file => parseSessionFile(file, readFileSync(join(sessions, file), 'utf8'), blob))
      .filter(parsed => parsed.kind !== 'written'),
  };
};

interface Taping extends Capture {
  readonly folder: string;
  readonly run: WorkerRun;
  readonly packed: Readonly<Record<string, string>>;
  readonly workplace: string;
}

/** Gives the exit code of the worker. */
async function tapeAgain(
  { io, context, project, place, folder, run, packed, workplace, history }: Taping,
  draft: Draft,
): Promise<number> {
  const found = { ...place, folder, file: join(folder, `${place.name}.toml`) };
  const manifest = readCase(found);
  const stage = await stageOf(found, manifest, context);
  try {
    const again = await reenact(stage, { manifest, context, run, draft, workplace });
    refuseDifference(history, again.history);
    const journal = again.journal;
    await distil(
      {
        case: place.name,
        recording: await readJournal(join(journal, 'entries.jsonl')),
        activities: readActivities(journal),
        objectsDir: join(journal, 'objects'),
        repository: again.repository,
        base: stage.base,
        redactor: again.redactor,
        made: await madeNow(stage.git, context),
        main: await mainOf(stage, run.branch),
        steps: manifest.steps.map(({ name }) => name),
        files: packed,
      },
      folder,
    );
    const leaks = await scanForLeaks({
      folder,
      secrets: secretsOf(io.env),
      paths: [{ name: 'repo', path: project.root }],
      objects: [join(stage.repo, '.git', 'objects')],
    });
    if (leaks.length > 0) throw leakError(leaks);
    return again.exit;
  } finally {
    stage.remove();
  }
}

/** What was done again must have come to the same. */
function refuseDifference(before: readonly HistoryEvent[], after: readonly HistoryEvent[]): void {
  if (digestsOf(before).history === digestsOf(after).history) return;
  const [was, is] = [before, after].map(history => history.map(({ type }) => type));
  const at = was?.findIndex((type, index) => type !== is?.[index]) ?? -1;
  const differs =
    at < 0
      ? ''
      : `: its event ${at + 1} was ${was?.[at]}, and is ${is?.[at] ?? 'not there'} when it is done again`;
  throw refused(
    `the task does not come to the same when it is done again by one worker alone${differs}`,
    'what a worker sees of others beside main and their claims is not in its journal; capture another run of the same kind',
  );
}
