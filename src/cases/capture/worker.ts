import { mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { HistoryEvent } from '../../core/events.ts';
import type { Outcome } from '../../effects/effect.ts';
import { readJournal } from '../../effects/recording/journal-reader.ts';
import { type RecordedEntry, witnessOf } from '../../effects/recording/recording.ts';
import { secretsOf } from '../../effects/redact/secrets.ts';
import { digestsOf } from '../../engine/history/digest.ts';
import { parseSessionFile } from '../../engine/recording/decode.ts';
import { withoutThoughts } from '../../engine/recording/encode.ts';
import { createGit } from '../../git/git.ts';
import type { ConfirmEnd, MoveEnd } from '../../git/landing/landing.ts';
import type { Repository } from '../../git/repository.ts';
import { projectRedactor } from '../../project/journal/run-journal.ts';
import { type Claim, isHeld } from '../../store/claims.ts';
import type { Claims } from '../../worker/effects/tasks.ts';
import type { TaskFiles } from '../../worker/tasks/read.ts';
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
import { type Leg, refused } from './legs.ts';
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

/** That somebody else had moved the branch when the run reached an effect; `nth` counts from 1. */
export interface Move {
  readonly step: string;
  readonly label: string;
  readonly nth: number;
  readonly commit: string;
}

/** One task of a worker, with all that it saw of others. */
export interface WorkerRun {
  readonly leg: Leg;
  readonly runId: string;
  /** Of the worker, and of the run's owner. */
  readonly incarnations: readonly string[];
  readonly branch: string;
  /** Where the branch was when the task was dispatched. */
  readonly main: string;
  readonly claims: readonly CaseClaim[];
  readonly moves: readonly Move[];
  /** What the project's command printed as tasks, if one lists them. */
  readonly listed: Outcome | undefined;
  /** What came of pushing, if that was done. */
  readonly pushed: Outcome | undefined;
}

/** Reads the journal of a run of a worker. Throws CAPTURE_REFUSED. */
async function workerRunOf(legs: readonly Leg[], repository: Repository): Promise<WorkerRun> {
  const [leg, ...others] = legs;
  if (!leg || others.length > 0)
    throw refused(
      'a worker died in the middle of this run, and another one took it over',
      'a case has what one worker did with one task: capture another run of the same kind',
    );
  if (leg.exit === undefined)
    throw refused(
      'the worker died in the middle of this run, and nobody has gone on with it',
      'let a worker go on with it: reprise worker --once; then capture another run of the same kind',
    );
  const { entries } = leg;
  const claimed = entries.findLastIndex(({ op }) => op === 'claim.take');
  const before = entries.slice(0, claimed);
  const created = entries.find(({ op }) => op === 'store.create')?.args as Created | undefined;
  const read = answerOf<TaskFiles>(before.findLast(({ op }) => op === 'tasks.read'));
  const seen = answerOf<Claims>(before.findLast(({ op }) => op === 'claims.list'));
  const branch = leg.args[leg.args.indexOf('--branch') + 1];
  if (!created || !read?.main || !seen || branch === undefined)
    throw refused('the journal does not say which task was taken', 'capture another run of the same kind');
  const { runId, owner, events } = created;
  return {
    leg,
    runId,
    incarnations: [events[0]?.data.input.incarnation ?? '', owner],
    branch,
    main: read.main,
    claims: seen.claims.map(toCaseClaim),
    moves: await movesOf(leg, { repository, branch, main: read.main }),
    listed: before.findLast(({ op }) => op === 'tasks.list.end')?.outcome,
    pushed: entries.findLast(({ op }) => op === 'git.push.end')?.outcome,
  };
}

interface Created {
  readonly runId: string;
  readonly owner: string;
  readonly events: readonly { readonly data: { readonly input: { readonly incarnation: string } } }[];
}

const answerOf = <T>(entry: RecordedEntry | undefined): T | undefined =>
  entry?.outcome?.kind === 'ok' ? (entry.outcome.value as T) : undefined;

/** A claim of a run that has ended is held by nobody, and can be taken. */
const toCaseClaim = (claim: Claim): CaseClaim => {
  const { task, state, version, by } = claim;
  return { task, state: state === 'held' && !isHeld(claim) ? 'released' : state, version, by };
};

interface Where {
  readonly repository: Repository;
  readonly branch: string;
  readonly main: string;
}

/** Where a run learns where the branch is, or that it has moved. */
const looks: ReadonlySet<string> = new Set(['workspace.base', 'land.prepare', 'land.move', 'land.confirm']);

/** Each time that the run looked where the branch is, and it was elsewhere. */
async function movesOf({ step, entries }: Leg, where: Where): Promise<readonly Move[]> {
  const moves: Move[] = [];
  let tip = where.main;
  /** Where the branch had gone that was about to be moved: where to is known from the next look. */
  let lost: Pick<Move, 'label' | 'nth'> | undefined;
  const reached = new Map<string, number>();
  for (const entry of entries) {
    const { op: label } = entry;
    if (!looks.has(label)) continue;
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
  { repository, branch }: Where,
  { tip, found }: { readonly tip: string; readonly found: string },
): Promise<void> {
  if (await isAncestor(repository, tip, found)) return;
  throw refused(
    `${branch} was set back by somebody while the run was under way, from ${tip.slice(0, 10)} to ${found.slice(0, 10)}`,
    'capture a run during which nothing but new commits came onto it',
  );
}

const isAncestor = async ({ git }: Repository, older: string, newer: string): Promise<boolean> =>
  (await git.run(['merge-base', '--is-ancestor', older, newer])).code === 0;
