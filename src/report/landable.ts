import type { RunView } from '../view/run-view.ts';
import type { StepProgress } from '../view/step-progress.ts';

const done: ReadonlySet<string> = new Set(['landed', 'nothing-to-land']);

/** Has commits of its own on a branch. */
export const hasWork = ({ work }: StepProgress): boolean => (work.workspace?.saved?.commits ?? 0) > 0;

/** Steps and workers with finished work that the run has not landed: without the losers of a selection, and without what a later step went on from. */
export function landable(view: RunView): readonly StepProgress[] {
  const landed = new Set(
    view.steps.flatMap(({ work }) =>
      work.landings.filter(({ outcome }) => done.has(outcome)).map(({ branch }) => branch),
    ),
  );
  const bases = new Set(
    view.steps.flatMap(step =>
      step.status === 'completed' && hasWork(step) ? [step.work.workspace?.base] : [],
    ),
  );
  return view.steps.filter(step => {
    const { workspace } = step.work;
    return (
      step.status === 'completed' &&
      hasWork(step) &&
      !lost(step) &&
      !landed.has(workspace?.branch ?? '') &&
      !bases.has(workspace?.saved?.commit)
    );
  });
}

/** Another worker was selected. */
export function lost({ path, parent }: StepProgress): boolean {
  const winner = parent?.work.selection?.winner;
  return winner !== undefined && path !== `${parent?.path}:${winner}`;
}
