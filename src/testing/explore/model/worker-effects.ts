import { RepriseError } from '../../../core/errors.ts';
import { giveUp, layOut, takeSolution } from '../../../git/model/conflicts.ts';
import type { Model } from '../../../git/model/repository.ts';
import { keepOnBranch, removeWorkspace, saveWork, thereAt } from '../../../git/model/workspaces.ts';
import type { WorkerEffects } from '../../../worker/effects/index.ts';
import { withState } from '../../../worker/tasks/parse.ts';
import { like } from './like.ts';
import type { ModelEffects } from './modelled.ts';

/** What workers do with git and files, done to a model. */
export const workersOnModel = (model: Model): ModelEffects => ({
  'task.mark': like<WorkerEffects['markTask']>(({ folder, file, state }) => {
    const worktree = thereAt(model, folder);
    const entry = model.trees.fileAt(worktree.files, file);
    const marked = entry && withState(model.objects.text(entry.id), state);
    if (!entry || marked === undefined) return;
    const files = model.trees.with(worktree.files, file, { ...entry, id: model.objects.addBlob(marked) });
    model.change(worktree, { files });
  }),
  'conflict.lay-out': like<WorkerEffects['beginSolving']>(order => layOut(model, order)),
  'conflict.take-solution': like<WorkerEffects['goOnSolving']>(order => takeSolution(model, order)),
  'conflict.give-up': like<WorkerEffects['stopSolving']>(order => giveUp(model, order)),
  'checkout.cleared': like<WorkerEffects['checkoutCleared']>(
    () => {},
    ({ path, files }) => !hasChanged(model, path, files),
  ),
  'work.save': like<WorkerEffects['saveLeft']>(request => void saveWork(model, request)),
  'work.park': like<WorkerEffects['park']>(order => keepOnBranch(model, 'parked', order)),
  'work.deliver': like<WorkerEffects['deliver']>(order => keepOnBranch(model, 'task', order)),
  'git.push': like<WorkerEffects['push']>(({ branch, commit }) => void model.pushed.set(branch, commit)),
  'workspace.remove': like<WorkerEffects['removeWorkspace']>(order => removeWorkspace(model, order)),
  'tasks.list': like<WorkerEffects['listTasks']>(() => {
    throw new RepriseError('INTERNAL', 'the model of a repository runs no command that lists tasks', {
      hint: 'explore the case on real git: --on git',
    });
  }),
});

function hasChanged(model: Model, path: string, files: readonly string[]): boolean {
  const worktree = model.worktreeAt(path);
  return worktree !== undefined && model.uncommitted(worktree).some(file => files.includes(file));
}
