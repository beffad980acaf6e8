import type { Leg } from '../../cases/capture/legs.ts';
import type { Recording as RecordedActivity } from '../../engine/recording/session-file.ts';
import { unitOf } from '../../engine/state/graph.ts';
import type { WorktreeState } from '../../git/delta/state.ts';
import type { Repository } from '../../git/repository.ts';
import type { CutLeg } from './cut-leg.ts';
import { savedIn } from './under-way.ts';

/**
 * Nobody saw what was left in a workspace by the last that a process did there before it died; but the next process saw
 * what it found there, or committed it. That is what is taken to have been left.
 */
export async function withWhatWasLeft(
  legs: readonly CutLeg[],
  repository: Repository | undefined,
): Promise<readonly CutLeg[]> {
  if (!repository) return legs;
  return Promise.all(
    legs.map(async (leg, index) => {
      const next = legs[index + 1];
      if (!leg.killedAfter) return leg;
      const left = leg.activities.map(async activity => {
        const { before, after } = activity;
        if (after !== null || before === null) return activity;
        const found =
          foundIn(next, activity) ?? (await committedBy([leg, next], activity, { before, repository }));
        return found ? { ...activity, after: found } : activity;
      });
      return { ...leg, activities: await Promise.all(left) };
    }),
  );
}

/** The same role comes first: others find what that one has left by then. */
function foundIn(leg: Leg | undefined, { role, task }: RecordedActivity): WorktreeState | undefined {
  const ofTask = (leg?.activities ?? [])
    .filter(each => each.task === task && each.before !== null)
    .toSorted((a, b) => a.order - b.order || (a.role < b.role ? -1 : 1));
  return (ofTask.find(each => each.role === role) ?? ofTask[0])?.before ?? undefined;
}

async function committedBy(
  legs: readonly (Leg | undefined)[],
  { task }: RecordedActivity,
  { before, repository }: { readonly before: WorktreeState; readonly repository: Repository },
): Promise<WorktreeState | undefined> {
  const entries = legs.flatMap(leg => leg?.entries ?? []);
  const path = pathOf(entries, task);
  const outcome =
    path === undefined ? undefined : legs.map(leg => savedIn(leg?.entries ?? [], path)).find(Boolean);
  if (outcome?.kind !== 'ok') return undefined;
  const { commit } = outcome.value as { readonly commit: string };
  const { code, stdout } = await repository.git.run(['show', '--no-patch', '--format=%T %P', commit, '--']);
  const [tree, parent] = stdout.trim().split(' ');
  if (code !== 0 || tree === undefined) return undefined;
  // What was left uncommitted became that commit; or else it was all committed, and that is the commit.
  if (parent === before.head.commit) return { ...before, tree };
  return { ...before, tree, head: { ...before.head, commit }, index: { tree, intentToAdd: [] } };
}

interface Order {
  readonly path: string;
  readonly unit: { readonly step: string; readonly worker?: number | undefined };
}

const pathOf = (entries: Leg['entries'], task: string): string | undefined =>
  entries
    .filter(({ op }) => op === 'workspace.create.begin')
    .map(({ args }) => args as Order)
    .find(({ unit }) => unitOf(unit.step, unit.worker) === task)?.path;
