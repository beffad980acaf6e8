import { mkdirSync, readdirSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import type { HistoryEvent } from '../../core/index.ts';
import { type EffectOutcome, fileLimits, readRecordedFile, readRecordedText } from '../../effects/index.ts';
import { type RecordedEntry, readJournal, witnessOf } from '../../effects/recording/index.ts';
import { digestsOf } from '../../engine/history/index.ts';
import { parseSessionFile, withoutThoughts } from '../../engine/recording/index.ts';
import { createGit, type Repository } from '../../git/index.ts';
import type { ConfirmEnd, MoveEnd } from '../../git/landing/index.ts';
import { temporaryFolder } from '../../process/index.ts';
import { projectRedactor } from '../../project/journal/index.ts';
import { type Claim, isHeld } from '../../store/index.ts';
import type { Claims } from '../../worker/index.ts';
import type { TaskFiles } from '../../worker/tasks/index.ts';
import { madeNow } from '../context.ts';
import { readCase } from '../manifest/load.ts';
import type { CaseClaim } from '../manifest/manifest.ts';
import { mainOf, stageOf } from '../perform/stage.ts';
import { distil, readActivities } from '../record/distil.ts';
import { leakError, scanForLeaks } from '../record/leak-scan.ts';
import { copyObjects, filesBesideBase, repositoryOf, writeBase } from './base.ts';
import type { Capture } from './capture.ts';
import { type CapturedCase, caseText } from './case-text.ts';
import { type LandingTrace, landingTraces } from './checks.ts';
import { type RecordedWork, reenact } from './reenact.ts';
import { captureAnother, marksOfSegments, type RunSegment, refused } from './segments.ts';

/**
 * Makes a case of one task of a worker. The journal of a worker cannot serve as the tape: it also holds other tasks and
 * depends on other workers. So the task is run again and recorded in a fresh repository, by a worker that takes only
 * this task. It sees the claims and branch moves of other workers that it saw originally, and its agents and scripts are
 * replayed. Throws CAPTURE_REFUSED, SECRET_LEAKED.
 */
export async function writeWorkerCase(
  folder: string,
  capture: Capture & { readonly objectsDir: string },
): Promise<void> {
  const { io, project, place, objectsDir, description } = capture;
  const repository = await repositoryOf(project, io);
  const run = await workerRunOf(capture.segments, repository);
  const { segment, main, branch, moves, claims } = run;
  copyObjects(segment.folder, objectsDir);
  const activities = segment.activities.map(withoutThoughts);
  const base = { commit: main, ref: branch };
  const written = await writeBase(folder, {
    ...{ repository, objectsDir, base, activities },
    moves: moves.map(({ commit }) => commit),
  });
  const redactor = projectRedactor(project, io);
  const files = await filesBesideBase(segment.files, { repository, base, redactor });
  const text: CapturedCase = { description, segments: [segment], base: written.base, files, claims, moves };
  const writeText = (captured: CapturedCase) =>
    writeFileSync(join(folder, `${place.name}.toml`), redactor.text(caseText(captured)));
  writeText(text);
  const workplace = temporaryFolder('again');
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
    writeText({ ...text, segments: [{ ...segment, exit }] });
  } finally {
    rmSync(workplace, { recursive: true, force: true });
  }
}

const draftOf = (folder: string): RecordedWork => {
  const blob = (sha: string) =>
    readRecordedFile({ file: join(folder, 'blobs', sha), maxBytes: fileLimits.blob });
  const sessions = join(folder, 'sessions');
  const files = readdirSync(folder).includes('sessions') ? readdirSync(sessions) : [];
  return {
    blob,
    sessions: files
      .filter(file => file.endsWith('.jsonl'))
      .map(file => parseSessionFile(file, readRecordedText({ file: join(sessions, file) }), blob))
      .filter(parsed => parsed.kind !== 'written'),
  };
};

interface TapingContext extends Capture {
  readonly folder: string;
  readonly run: WorkerRun;
  readonly packed: Readonly<Record<string, string>>;
  readonly workplace: string;
}

/** Runs the task again, writes the tape of the case, and returns the exit code of the worker. */
async function tapeAgain(
  { context, project, place, folder, run, packed, workplace, history }: TapingContext,
  draft: RecordedWork,
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
      secrets: again.redactor.secrets,
      marks: marksOfSegments([run.segment]),
      paths: [{ name: 'repo', path: project.root }],
      objects: [join(stage.repo, '.git', 'objects')],
    });
    if (leaks.length > 0) throw leakError(leaks);
    return again.exit;
  } finally {
    stage.remove();
  }
}

/** Throws CAPTURE_REFUSED if the history of the second run differs from the original one. */
function refuseDifference(before: readonly HistoryEvent[], after: readonly HistoryEvent[]): void {
  if (digestsOf(before).history === digestsOf(after).history) return;
  const [was, is] = [before, after].map(history => history.map(({ type }) => type));
  const at = was?.findIndex((type, index) => type !== is?.[index]) ?? -1;
  const differs =
    at < 0 ? '' : `: event ${at + 1} was ${was?.[at]}, and is ${is?.[at] ?? 'missing'} in the replay`;
  throw refused(
    `replaying the task with a single worker has a different result${differs}`,
    `a journal records only the claims and the commits of other workers; ${captureAnother}`,
  );
}

/** A move of the branch by another process, noticed when the run reached an effect. */
export interface MainMove {
  readonly step: string;
  /** Name of the effect. */
  readonly label: string;
  /** Occurrence of the effect in the run, from 1. */
  readonly nth: number;
  readonly commit: string;
}

/** One task of a worker, with everything that it saw of other workers. */
export interface WorkerRun {
  readonly segment: RunSegment;
  readonly runId: string;
  /** Incarnation of the worker, then that of the run's owner. */
  readonly incarnations: readonly string[];
  readonly branch: string;
  /** Commit of the branch when the task was dispatched. */
  readonly main: string;
  readonly claims: readonly CaseClaim[];
  readonly moves: readonly MainMove[];
  /** Output of the project's task command, if it has one. */
  readonly listed: EffectOutcome | undefined;
  /** Outcome of the push, if there was one. */
  readonly pushed: EffectOutcome | undefined;
}

/** Reads the journal of a run of a worker. Throws CAPTURE_REFUSED. */
async function workerRunOf(segments: readonly RunSegment[], repository: Repository): Promise<WorkerRun> {
  const [segment, ...others] = segments;
  if (!segment || others.length > 0)
    throw refused(
      'a worker died during this run, and another worker took it over',
      `only a run that a single worker finished can be captured; ${captureAnother}`,
    );
  if (segment.exit === undefined)
    throw refused(
      'the worker died during this run, and the run has not been resumed',
      `resume it: reprise worker --once; then ${captureAnother}`,
    );
  const { entries } = segment;
  const claimed = entries.findLastIndex(({ op }) => op === 'claim.take');
  const before = entries.slice(0, claimed);
  const created = entries.find(({ op }) => op === 'store.create')?.args as CreatedRun | undefined;
  const read = answerOf<TaskFiles>(before.findLast(({ op }) => op === 'tasks.read'));
  const seen = answerOf<Claims>(before.findLast(({ op }) => op === 'claims.list'));
  const branch = segment.args[segment.args.indexOf('--branch') + 1];
  if (!created || !read?.main || !seen || branch === undefined)
    throw refused('the journal does not show which task the worker took', captureAnother);
  const { runId, owner, events } = created;
  return {
    segment,
    runId,
    incarnations: [events[0]?.data.input.incarnation ?? '', owner],
    branch,
    main: read.main,
    claims: seen.claims.map(toCaseClaim),
    moves: await movesOf(segment, { repository, branch, main: read.main }),
    listed: before.findLast(({ op }) => op === 'tasks.list.end')?.outcome,
    pushed: entries.findLast(({ op }) => op === 'git.push.end')?.outcome,
  };
}

interface CreatedRun {
  readonly runId: string;
  readonly owner: string;
  readonly events: readonly { readonly data: { readonly input: { readonly incarnation: string } } }[];
}

const answerOf = <T>(entry: RecordedEntry | undefined): T | undefined =>
  entry?.outcome?.kind === 'ok' ? (entry.outcome.value as T) : undefined;

/** Converts a claim; one whose run has ended counts as released, because it can be taken. */
const toCaseClaim = (claim: Claim): CaseClaim => {
  const { task, state, version, by } = claim;
  return { task, state: state === 'held' && !isHeld(claim) ? 'released' : state, version, by };
};

interface RepositoryContext {
  readonly repository: Repository;
  readonly branch: string;
  readonly main: string;
}

/** Effects by which a run sees the commit of the branch, or that the branch has moved. */
const branchReads: ReadonlySet<string> = new Set([
  'workspace.base',
  'land.prepare',
  'land.move',
  'land.confirm',
]);

/** Collects the moves of the branch by other processes, from the effects that read the branch. */
async function movesOf(
  { step, entries }: RunSegment,
  where: RepositoryContext,
): Promise<readonly MainMove[]> {
  const moves: MainMove[] = [];
  let tip = where.main;
  /** Effect that found the branch moved. Only the next effect that reads the branch shows its commit. */
  let lost: Pick<MainMove, 'label' | 'nth'> | undefined;
  const reached = new Map<string, number>();
  for (const entry of entries) {
    const { op: label } = entry;
    if (!branchReads.has(label)) continue;
    const nth = (reached.get(label) ?? 0) + 1;
    reached.set(label, nth);
    if (isLost(entry)) lost = { label, nth };
    for (const { kind, commit } of seenIn(entry)) {
      if (kind === 'moved') tip = commit;
      if (kind !== 'found') continue;
      if (commit !== tip) {
        await refuseSetBack(where, { tip, found: commit });
        moves.push({ step, ...(lost ?? { label, nth }), commit });
        tip = commit;
      }
      lost = undefined;
    }
  }
  return moves;
}

type Sighting = Pick<LandingTrace, 'kind' | 'commit'>;

function seenIn(entry: RecordedEntry): readonly Sighting[] {
  const { op, outcome } = entry;
  return op === 'workspace.base' && outcome?.kind === 'ok'
    ? [{ kind: 'found', commit: String(outcome.value) }]
    : landingTraces(entry);
}

const isLost = (entry: RecordedEntry): boolean =>
  /^land\.(move|confirm)$/.test(entry.op) && answerOf<MoveEnd | ConfirmEnd>(entry)?.kind === 'lost';

async function refuseSetBack(
  { repository, branch }: RepositoryContext,
  { tip, found }: { readonly tip: string; readonly found: string },
): Promise<void> {
  if (await isAncestor(repository, tip, found)) return;
  throw refused(
    `another process reset ${branch} during the run, from ${tip.slice(0, 10)} to ${found.slice(0, 10)}`,
    `capture a run during which ${branch} only received new commits`,
  );
}

const isAncestor = async ({ git }: Repository, older: string, newer: string): Promise<boolean> =>
  (await git.run(['merge-base', '--is-ancestor', older, newer])).code === 0;
