import { relative } from 'node:path';
import { RepriseError } from '../../core/errors.ts';
import type { EngineEffects } from '../../engine/effects.ts';
import type { Environment } from '../../engine/environment.ts';
import { artifactFile } from '../../engine/step/artifacts.ts';
import { artifactFolder, scratchFolder, type WorkEffects } from '../../engine/step/effects.ts';
import type { Work } from '../../engine/step/index.ts';
import { type Model, takePorts } from '../../git/model/repository.ts';
import {
  changesIn,
  createWorkspace,
  markSetUp,
  patchOf,
  resetWorkspace,
  resolveBase,
  saveWork,
  thereAt,
} from '../../git/model/workspaces.ts';
import { like } from '../../testing/explore/model/like.ts';
import type { ModelEffects } from '../../testing/explore/model/modelled.ts';

/** What engines do with git and files, done to a model. */
export const engineOnModel = (
  model: Model,
  environment: Pick<Environment, 'projectRoot' | 'stateDir'>,
): ModelEffects => ({
  'git.base': like<Work['pinBase']>(() => {
    const root = thereAt(model, environment.projectRoot);
    const commit = resolveBase(model, 'HEAD');
    return { ref: root.head.kind === 'branch' ? root.head.branch : 'HEAD', commit };
  }),
  /** No process of this world is left behind. */
  'process.end-orphans': like<EngineEffects['endOrphans']>(() => 0),
  'workspace.base': like<WorkEffects['resolveBase']>(name => resolveBase(model, name)),
  'workspace.tip': like<WorkEffects['tipOfBranch']>(branch => model.tip(branch) ?? null),
  'workspace.ports': like<WorkEffects['takePorts']>(order => takePorts(model, order)),
  'workspace.release-ports': like<WorkEffects['releasePorts']>(key => void model.ports.delete(key)),
  'workspace.create': like<WorkEffects['createWorkspace']>(order => createWorkspace(model, order)),
  'workspace.reset': like<WorkEffects['resetWorkspace']>(({ path, base }) => {
    markSetUp(model, path, false);
    resetWorkspace(model, { path, commit: base });
  }),
  'workspace.mark-set-up': like<WorkEffects['markSetUp']>(({ path, done }) => markSetUp(model, path, done)),
  'workspace.commit': like<WorkEffects['saveWork']>(request => saveWork(model, request)),
  'workspace.verify-unchanged': like<WorkEffects['changesIn']>(folder => changesIn(model, folder)),
  'workspace.changes': like<WorkEffects['patchOf']>(request => patchOf(model, request)),
  'artifacts.collect': like<WorkEffects['collectArtifacts']>(({ runId, unit, folder, rules }) => {
    const worktree = thereAt(model, folder);
    return rules.map(rule => {
      if (!model.trees.fileAt(worktree.files, rule.path))
        throw new RepriseError(
          'ARTIFACT_INVALID',
          `the artifact \`${rule.name}\` is missing: there is no ${rule.path} in ${folder}`,
        );
      const file = artifactFile(artifactFolder(environment, { runId, unit }), rule);
      return { name: rule.name, path: relative(environment.projectRoot, file) };
    });
  }),
  'scratch.write': like<WorkEffects['writeScratch']>(order => scratchFolder(environment, order)),
  'scratch.remove': like<WorkEffects['removeScratch']>(() => {}),
});
