import { type RecordedEntry, type Recording, witnessOf } from '../../effects/recording/recording.ts';
import type { Recording as RecordedActivity } from '../../engine/recording/session-file.ts';
import type { WorktreeState } from '../../git/delta/state.ts';
import type { CutLeg } from './cut-leg.ts';

/** The legs as the steps of one case: one after another, each below a lane of its own. */
export function joinLegs(legs: readonly CutLeg[]): Recording {
  const entries = legs
    .flatMap(({ step, entries: own }) => own.map(entry => below(step, entry)))
    .map((entry, n) => ({ ...entry, n }));
  return { entries, witness: witnessOf(entries) };
}

const below = (step: string, entry: RecordedEntry): RecordedEntry => ({
  ...entry,
  lane: `${step}/${entry.lane}`,
  ...(namesLanes(entry) ? { args: entry.args.map(name => `${step}/${name}`) } : {}),
});

const namesLanes = (entry: RecordedEntry): entry is RecordedEntry & { readonly args: readonly string[] } =>
  /^lane\./.test(entry.op) && Array.isArray(entry.args);

/** What sessions and scripts did, named after the steps of the case. */
export const joinActivities = (legs: readonly CutLeg[]): readonly RecordedActivity[] =>
  legs.flatMap(({ step, activities }) =>
    activities.map(each => ({ ...withOwnStashes(each), task: `${step}.${each.task}` })),
  );

/** Stashes belong to the whole repository. Those that the work did not touch are nobody else's business. */
function withOwnStashes(activity: RecordedActivity): RecordedActivity {
  const { before, after } = activity;
  if (before === null || before.stashes.length === 0) return activity;
  const untouched = new Set(
    before.stashes
      .map(({ commit }) => commit)
      .filter(commit => !after || after.stashes.some(stash => stash.commit === commit)),
  );
  const own = (state: WorktreeState): WorktreeState => ({
    ...state,
    stashes: state.stashes.filter(({ commit }) => !untouched.has(commit)),
  });
  return { ...activity, before: own(before), after: after && own(after) };
}
