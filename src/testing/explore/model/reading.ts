import type { Branches } from '../../../git/branches.ts';
import type { Model } from '../../../git/model/repository.ts';

const mostBytes = 1024 * 1024;

/** What can be read of the branches of a model. */
export const branchesIn = (model: Model): Branches => ({
  tip: async branch => model.tip(branch) ?? null,
  tipNow: branch => model.tip(branch) ?? null,
  filesAt: async ({ commit, folder }) =>
    model.trees
      .filesIn(model.treeOf(commit), folder)
      .filter(({ entry: { mode } }) => mode === '100644' || mode === '100755')
      .map(({ path, entry: { id } }) => {
        const bytes = model.objects.bytes(id).length;
        return { path, blob: id, bytes, text: bytes > mostBytes ? undefined : model.objects.text(id) };
      }),
});
