import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { apply, type Checkout, furnished, record } from '../../git/delta/test-support.ts';
import { loadPacks, modelOf } from '../../git/model/load.ts';
import { carryOut } from './model-sessions.ts';

/** A change of a whole file, and whether a commit is made of it. */
interface Deed {
  readonly path: string;
  readonly text: string;
  readonly then: 'leave' | 'stage' | 'commit';
}

/** Never the same text in two places: git would take that for a file that moved. */
const deed = fc
  .tuple(
    fc.constantFrom('src/a.txt', 'README.md', 'new/one.txt', 'two.txt'),
    fc.constantFrom('1', '2'),
    fc.constantFrom<Deed['then']>('leave', 'leave', 'stage', 'commit'),
  )
  .map(([path, word, then]): Deed => ({ path, text: `${path} ${word}\n`, then }));

function doAll(checkout: Checkout, deeds: readonly Deed[]): void {
  for (const { path, text, then } of deeds) {
    checkout.write(path, text);
    if (then === 'stage') checkout.git('add', '--all');
    if (then !== 'commit') continue;
    checkout.git('add', '--all');
    checkout.git('commit', '--quiet', '--allow-empty', `--message=Write ${path}`);
  }
}

describe('what a session did', () => {
  it('is done to a model as it is done on git, also on another base', { timeout: 300_000 }, async () => {
    const some = fc.array(deed, { maxLength: 4 });
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

  it('is known also if somebody else has come to the same before, and gone on', async () => {
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

  it('is not done at all where it does not fit', async () => {
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
      why: 'what it did not commit conflicts with the other base: README.md',
    });
    expect(model.worktrees.get(other.root)).toEqual(before);
  });
});

describe('a copy of a model', () => {
  it('goes its own way', async () => {
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
