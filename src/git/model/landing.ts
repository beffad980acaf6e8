import { RepriseError } from '../../core/index.ts';
import type { Owner } from '../../store/index.ts';
import type {
  ConfirmEnd,
  LandedEarlier,
  LockResult,
  MoveEnd,
  PrepareResult,
  ProtectedWork,
  VerifyResult,
} from '../landing/landing.ts';
import { type CheckoutBlocked, overwriting } from '../landing/move-branch.ts';
import { protectedAmong, shortDiff, type Verification } from '../landing/prepare.ts';
import { shellWord } from '../names.ts';
import type { LockOrder, MoveOrder, PrepareOrder, VerifyOrder } from '../orders.ts';
import type { LandedNote } from '../workspace/branch-records.ts';
import { branchRef, type Model, type ModelWorktree } from './repository.ts';
import { textOf } from './workspaces.ts';

type IsAlive = (owner: Owner) => boolean;

/** Whether the lock is free, or its holder is dead. */
export const isLandingFree = ({ landing: { holder } }: Model, isAlive: IsAlive): boolean =>
  holder === undefined || !isAlive(holder.owner);

/** Takes the lock, which must be free. */
export function lockLanding(
  model: Model,
  { key }: Pick<LockOrder, 'key'>,
  { owner, isAlive }: { readonly owner: Owner; readonly isAlive: IsAlive },
): LockResult {
  if (!isLandingFree(model, isAlive))
    throw new RepriseError('INTERNAL', `${key} takes the landing lock although it is held`);
  const token = model.landing.token + 1;
  model.landing = { token, holder: { owner, token } };
  return { token };
}

/** Does nothing if another process has taken over the lock. */
export function unlockLanding(model: Model, held: number | undefined): void {
  if (isHeldBy(model, held)) model.landing = { token: model.landing.token, holder: undefined };
}

const isHeldBy = ({ landing: { holder } }: Model, held: number | undefined): boolean =>
  holder !== undefined && holder.token === held;

/** In-memory `prepareLanding`. */
export async function prepareLanding(
  model: Model,
  {
    branch: source,
    onto: target,
    leavesBranch,
    config = 'reprise.yaml',
  }: Pick<PrepareOrder, 'branch' | 'onto' | 'leavesBranch'> & { readonly config?: string },
): Promise<PrepareResult> {
  const from = tipOf(model, target, ' to land on');
  const tip = tipOf(model, source, '');
  const replayed = model.history.replay({ onto: from, tip });
  if (replayed.kind === 'conflict') {
    const { files, subject } = replayed;
    return { kind: 'conflict', files, subject, onto: from, ...workAt(model, source) };
  }
  if (replayed.kind === 'nothing') {
    const landed = landedBefore(model, { source, target, tip });
    if (landed === undefined) noteLanded(model, { source, tip, commit: from });
    return { kind: 'nothing', commit: from, ...(landed && { landed }) };
  }
  const { commit, commits } = replayed;
  const blocked = leavesBranch ? undefined : obstacle(model, { branch: target, from, to: commit });
  if (blocked) return blocked;
  const guarded = await protectedWork(model, { from, to: commit, config });
  return {
    kind: 'ready',
    from,
    tip,
    commit,
    ...(commits && { commits }),
    ...(guarded && { protected: guarded }),
  };
}

async function protectedWork(
  model: Model,
  { from, to, config }: { readonly from: string; readonly to: string; readonly config: string },
): Promise<ProtectedWork | undefined> {
  const settings = model.trees.fileAt(model.treeOf(from), config);
  const differences = model.trees.differences(model.treeOf(from), model.treeOf(to));
  const files = await protectedAmong(differences, {
    settings: settings ? model.objects.text(settings.id) : '',
  });
  if (files.length === 0) return undefined;
  const names = new Set(files.map(({ path }) => path));
  return {
    files,
    diff: shortDiff(
      textOf(
        model,
        differences.filter(({ path }) => names.has(path)),
      ),
    ),
  };
}

function tipOf(model: Model, branch: string, purpose: string): string {
  const tip = model.tip(branch);
  if (tip !== undefined) return tip;
  throw new RepriseError('CANNOT_LAND', `there is no branch ${branch}${purpose}`);
}

function workAt(model: Model, source: string): { readonly workAt?: string } {
  const [checkout] = model.checkoutsOf(source);
  return checkout ? { workAt: checkout.path } : {};
}

function landedBefore(
  model: Model,
  { source, target, tip }: { readonly source: string; readonly target: string; readonly tip: string },
): LandedEarlier | undefined {
  const { landed } = model.records.get(source) ?? {};
  if (landed?.tip !== tip || landed.moved?.onto !== target) return undefined;
  const { commit, moved } = landed;
  return { commit, from: moved.from, commits: commitsBetween(model, { from: moved.from, to: commit }) };
}

const commitsBetween = (model: Model, { from, to }: Pick<BranchMove, 'from' | 'to'>) =>
  model.history.commitsOf([to], [from]).map(({ id, subject }) => ({ commit: id, subject }));

function noteLanded(model: Model, { source, ...landed }: LandedNote & { readonly source: string }): void {
  const record = model.records.get(source);
  if (record) model.records.set(source, { ...record, landed });
}

interface BranchMove {
  readonly branch: string;
  readonly from: string;
  readonly to: string;
}

/** Returns the checkout of the branch that blocks its move, if there is one. */
function obstacle(model: Model, { branch, from, to }: BranchMove): CheckoutBlocked | undefined {
  const [first, second] = model.checkoutsOf(branch);
  if (first && second)
    return {
      kind: 'in-the-way',
      path: second.path,
      why: `${branch} is checked out twice: in ${first.path} and in ${second.path}`,
      hint: `detach one of the checkouts: git -C ${shellWord(second.path)} switch --detach`,
      files: [],
    };
  if (!first) return undefined;
  const uncommitted = model.uncommitted(first);
  if (uncommitted.length === 0) return undefined;
  const changed = new Set(model.trees.changedPaths(model.treeOf(from), model.treeOf(to)));
  const files = uncommitted.filter(file => changed.has(file));
  return files.length === 0 ? undefined : overwriting(first.path, { branch, files });
}

export interface MayMove {
  /** Token of the lock that the caller acquired. `undefined` if it holds none. */
  readonly held: number | undefined;
  /** Called immediately before the target moves. */
  readonly mayLand: () => Promise<boolean>;
}

/** In-memory `confirmLanding`. */
export async function confirmLanding(
  model: Model,
  { branch: source, onto: target, ready }: Pick<MoveOrder, 'branch' | 'onto' | 'ready'>,
  { held, mayLand }: MayMove,
): Promise<ConfirmEnd> {
  const { from, tip, commit } = ready;
  if (!isHeldBy(model, held) || model.tip(target) !== from) return { kind: 'lost' };
  if (!(await mayLand())) return { kind: 'fenced' };
  noteLanded(model, { source, tip, commit });
  return { kind: 'confirmed' };
}

/** In-memory `moveLanding`. */
export async function moveLanding(
  model: Model,
  { branch: source, onto: target, ready }: Pick<MoveOrder, 'branch' | 'onto' | 'ready'>,
  { held, mayLand }: MayMove,
): Promise<MoveEnd> {
  const { from, tip, commit } = ready;
  if (!isHeldBy(model, held) || model.tip(target) !== from) return { kind: 'lost' };
  if (!(await mayLand())) return { kind: 'fenced' };
  const blocked = obstacle(model, { branch: target, from, to: commit });
  if (blocked) return blocked;
  const [checkout] = model.checkoutsOf(target);
  if (checkout) updateCheckout(model, checkout, { from, to: commit });
  model.refs.set(branchRef(target), commit);
  noteLanded(model, { source, tip, commit, moved: { onto: target, from } });
  const commits = ready.commits ?? commitsBetween(model, { from, to: commit });
  return {
    kind: 'moved',
    commits,
    wasAlone: isHeldBy(model, held),
    ...(checkout && { checkout: checkout.path }),
  };
}

/** Updates files and index as `git pull --ff-only` does: uncommitted changes stay. */
function updateCheckout(
  model: Model,
  checkout: ModelWorktree,
  { from, to }: Omit<BranchMove, 'branch'>,
): void {
  const [before, after] = [model.treeOf(from), model.treeOf(to)];
  const moved = (tree: string): string => {
    if (tree === before) return after;
    const changes = model.trees.differences(before, after);
    return model.trees.withAll(
      tree,
      changes.map(change => [change.path, change.after] as const),
    );
  };
  model.change(checkout, { files: moved(checkout.files), staged: moved(checkout.staged) });
}

/** In-memory `verifyLanding`. The rebased work is checked out during the verification. */
export async function verifyLanding(
  model: Model,
  { branch, commit }: Pick<VerifyOrder, 'branch' | 'commit'>,
  { path, run }: Pick<Verification, 'path' | 'run'>,
): Promise<VerifyResult> {
  const files = model.treeOf(commit);
  model.worktrees.set(path, {
    path,
    head: { kind: 'commit', commit },
    files,
    staged: files,
    isSetUp: false,
  });
  try {
    const { passed, output } = await run({ path, commit });
    return passed ? { passed } : { passed, output, ...workAt(model, branch) };
  } finally {
    model.worktrees.delete(path);
  }
}
