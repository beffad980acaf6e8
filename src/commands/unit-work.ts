import { RepriseError } from '../core/errors.ts';
import type { RunView } from '../view/run-view.ts';
import type { StepProgress, WorkspaceProgress } from '../view/step-progress.ts';
import { listed, selectUnit } from './select-unit.ts';

/** A step or worker that has a workspace of its own. */
export interface UnitWork {
  readonly step: StepProgress;
  readonly workspace: WorkspaceProgress;
}

/** What a person means by a step: its own workspace, or that of the worker that was selected. Throws USAGE. */
export function unitWork(view: RunView, reference: string, command: string): UnitWork {
  const named = selectUnit(view, reference);
  const { selection } = named.work;
  const step = selection ? (view.step(`${named.path}:${selection.winner}`) ?? named) : named;
  const { workspace } = step.work;
  if (workspace) return { step, workspace };
  const inside = view.steps.filter(({ path, work }) => work.workspace && path.startsWith(`${step.path}:`));
  const example = inside[0];
  if (example) {
    throw new RepriseError(
      'USAGE',
      `${step.path} has ${inside.length} workers with work of their own: ${listed(inside.map(({ path }) => path))}`,
      { hint: `name one: reprise ${command} ${view.runId} ${example.path}` },
    );
  }
  const others = view.steps.filter(({ work }) => work.workspace).map(({ path }) => path);
  throw new RepriseError('USAGE', `${step.path} of run ${view.runId} has no workspace of its own`, {
    hint: others.length > 0 ? `these have one: ${listed(others)}` : 'no step of the run has one',
  });
}
