import { RepriseError } from '../core/errors.ts';
import { nearest } from '../core/suggest.ts';
import type { RunView } from '../view/run-view.ts';
import type { StepProgress } from '../view/step-progress.ts';

/** The step or worker that a person names: `fix`, `fix:1`, `fix:1/build`. Throws USAGE. */
export function selectUnit(view: RunView, reference: string): StepProgress {
  const found = view.step(reference);
  if (found) return found;
  const paths = view.steps.map(({ path }) => path);
  const guess = nearest(reference, paths);
  const [, step = ''] = /^(.*):\d+$/.exec(reference) ?? [];
  const workers = view.step(step)?.children.filter(({ isWorker }) => isWorker) ?? [];
  const hint =
    workers.length > 0
      ? `the workers of ${step} are ${listed(workers.map(({ path }) => path))}`
      : guess
        ? `did you mean ${guess}?`
        : `the steps of the run are ${listed(paths)}`;
  throw new RepriseError('USAGE', `run ${view.runId} has no step ${reference}`, { hint });
}

const mostNames = 10;

export const listed = (names: readonly string[]): string =>
  names.length <= mostNames
    ? names.join(', ')
    : `${names.slice(0, mostNames).join(', ')} and ${names.length - mostNames} more`;
