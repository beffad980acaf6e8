import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { apply, type Checkout, furnished, record } from '../../git/delta/test-support.ts';
import { loadPacks, modelOf } from '../../git/model/load.ts';
import { carryOut } from './model-sessions.ts';

/** A write of a whole file, which is left, staged or committed. */
interface Deed {
  readonly path: string;
  readonly text: string;
  readonly then: 'leave' | 'stage' | 'commit';
}

/** Each path gets its own text, so that git never detects a rename. */
const delta = fc
  .tuple(
    fc.constantFrom('src/a.txt', 'README.md', 'new/one.txt', 'two.txt'),
    fc.constantFrom('1', '2'),
    fc.constantFrom<Deed['then']>('leave', 'leave', 'stage', 'commit'),
  )
  .map(([path, word, then]): Deed => ({ path, text: `${path} ${word}\n`, then }));

function doAll(checkout: Checkout, deltas: readonly Deed[]): void {
  for (const { path, text, then } of deltas) {
    checkout.write(path, text);
    if (then === 'stage') checkout.git('add', '--all');
    if (then !== 'commit') continue;
    checkout.git('add', '--all');
    checkout.git('commit', '--quiet', '--allow-empty', `--message=Write ${path}`);
  }
}

describe('changes of a recorded session', () => {
  it('have the same effect on the model as on git, even on another base', { timeout: 300_000 }, async () => {
    const some = fc.array(delta, { maxLength: 4 });
    await fc.assert(
      fc.asyncProperty(some, some, async (session, before) => {
        const { checkout } = furnished();
        const other = checkout.clone('the second');
        doAll(other, before);
        const repository = await other.open();
        const model = await modelOf(repository);
        const recorded = await record(checkout, () => doAll(checkout, session));
        await loadPacks(repository, [recorded.pack], model.objects);
        const { kind } = carryOut(model, other.root, recorded);
        const applied = await apply(other, recorded);
        expect(kind).toBe(applied.kind);
        const real = await modelOf(repository);
        expect(model.worktrees.get(other.root)).toEqual(real.worktrees.get(other.root));
        expect(model.tip('main')).toBe(real.tip('main'));
      }),
      { numRuns: Number(process.env['REPRISE_DRIFT_RUNS'] ?? 10), endOnFailure: true },
    );
  });

  it('are applied to a base that already contains them', async () => {
    const { checkout } = furnished();
    const other = checkout.clone('the second');
    const write = (path: string, then: Deed['then']): Deed => ({ path, text: `${path} 1\n`, then });
    doAll(other, [write('README.md', 'commit'), write('src/a.txt', 'commit')]);
    const repository = await other.open();
    const model = await modelOf(repository);
    const recorded = await record(checkout, () => doAll(checkout, [write('README.md', 'stage')]));
    await loadPacks(repository, [recorded.pack], model.objects);
    expect(carryOut(model, other.root, recorded)).toEqual({ kind: 'counterfactual' });
  });

  it('leave the model untouched if they conflict with the base', async () => {
    const { checkout } = furnished();
    const other = checkout.clone('the second');
    const model = await modelOf(await other.open());
    const recorded = await record(checkout, () => checkout.write('README.md', '# Mine\n'));
    await loadPacks(await other.open(), [recorded.pack], model.objects);
    const worktree = model.worktrees.get(other.root);
    if (!worktree) throw new Error('no checkout');
    const entry = { mode: '100644', id: model.objects.addBlob('# Yours\n') };
    const before = model.change(worktree, { files: model.trees.with(worktree.files, 'README.md', entry) });
    expect(carryOut(model, other.root, recorded)).toEqual({
      kind: 'inconclusive',
      why: 'its uncommitted changes conflict with the other base in README.md',
    });
    expect(model.worktrees.get(other.root)).toEqual(before);
  });
});

describe('a copy of a model', () => {
  it('does not share changes with the original', async () => {
    const { checkout } = furnished();
    const model = await modelOf(await checkout.open());
    const copy = model.clone();
    const worktree = copy.worktrees.get(checkout.root);
    if (!worktree) throw new Error('no checkout');
    copy.change(worktree, { files: copy.objects.emptyTree });
    copy.refs.delete('refs/heads/main');
    expect(model.worktrees.get(checkout.root)).toEqual(worktree);
    expect(model.tip('main')).toBe(checkout.line('rev-parse', 'main'));
  });
});
