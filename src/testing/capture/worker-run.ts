import { type LandingTrace, landingTraces } from '../../cases/capture/checks.ts';
import type { Leg } from '../../cases/capture/legs.ts';
import type { CaseClaim } from '../../cases/manifest/manifest.ts';
import type { Outcome } from '../../effects/effect.ts';
import type { RecordedEntry } from '../../effects/recording/recording.ts';
import type { ConfirmEnd, MoveEnd } from '../../git/landing/landing.ts';
import type { Repository } from '../../git/repository.ts';
import { type Claim, isHeld } from '../../store/claims.ts';
import type { Claims } from '../../worker/effects/tasks.ts';
import type { TaskFiles } from '../../worker/tasks/read.ts';
import { refused } from './refusal.ts';

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
export async function workerRunOf(legs: readonly Leg[], repository: Repository): Promise<WorkerRun> {
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
