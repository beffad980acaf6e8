import { knownCost } from '../view/cost.ts';
import type { StepProgress } from '../view/step-progress.ts';

/** What there is to say of the work of a step or worker, for programs; nothing where no agent and no workspace was. */
export function describeWork(step: StepProgress): object {
  const { work, spent, fanOut, item } = step;
  const { workspace, session, selection, landings, denials, artifacts } = work;
  return {
    ...(fanOut ? { workers: fanOut.total } : {}),
    ...(item === undefined ? {} : { matrix: item }),
    ...(selection ? { selected: selection.winner } : {}),
    ...(workspace
      ? {
          workspace: workspace.path,
          branch: workspace.branch,
          base: workspace.base,
          commit: workspace.saved?.commit ?? null,
        }
      : {}),
    ...(session
      ? { session: { agent: session.agent, kind: session.kind, id: session.sessionId ?? null } }
      : {}),
    ...(spent.sessions > 0 ? { cost: knownCost(spent), tokens: spent.tokens } : {}),
    ...(landings.length > 0 ? { landings } : {}),
    ...(denials.length > 0 ? { denials } : {}),
    ...(artifacts.length > 0 ? { artifacts } : {}),
  };
}
