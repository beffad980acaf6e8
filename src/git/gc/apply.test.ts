import { existsSync, mkdirSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { land } from '../landing/advance.ts';
import { Lab } from '../test-support.ts';
import { branchRecords } from '../workspace/branch-records.ts';
import { createWorkspace } from '../workspace/create.ts';
import { applyGc, gatherGcFacts } from './apply.ts';
import { bytesToFree, type GcFacts, planGc, type RunActivity } from './plan.ts';

const runs = new Map<string, RunActivity>([
  ['ended', 'ended'],
  ['active', 'active'],
]);

const sized = expect.toSatisfy((bytes: number) => bytes > 0);

async function gcLab() {
  const lab = new Lab();
  const repository = await lab.open();
  const { owner } = lab;
  return {
    lab,
    repository,
    owner,
    make: async (name: string, run?: string) => {
      const branch = `reprise/w/${name}`;
      const request = { repository, owner, path: lab.workspace(name), base: 'main', branch, run };
      return (await createWorkspace(request)).workspace;
    },
    collect: async () => {
      const plan = planGc(await gatherGcFacts({ repository, owner }), runs);
      return { plan, done: await applyGc({ repository, owner, plan }) };
    },
    branches: () => lab.git('for-each-ref', '--format=%(refname:short)', 'refs/heads').split('\n'),
  };
}

describe('garbage collection', () => {
  it('removes workspaces that are empty or landed, keeps the others, and says why', async () => {
    const { lab, repository, owner, make, collect, branches } = await gcLab();
    const empty = await make('empty', 'ended');
    const unlanded = await make('unlanded', 'ended');
    const commit = lab.commit(unlanded.path, 'b.txt', 'b\n');
    const landed = await make('landed', 'ended');
    lab.commit(landed.path, 'c.txt', 'c\n');
    const active = await make('active', 'active');
    const foreign = await make('foreign', 'elsewhere');
    const dirty = await make('dirty', 'ended');
    lab.write('d.txt', 'd\n', dirty.path);
    lab.commit(lab.root, 'main.txt', 'main\n');
    await land({ repository, owner, source: { branch: landed.branch }, onto: 'main' });

    const { plan, done } = await collect();
    expect(plan.leave).toEqual([
      { kind: 'workspace', what: active.path, why: 'run active has not ended', bytes: sized },
      { kind: 'workspace', what: dirty.path, why: 'it has uncommitted changes: d.txt', bytes: sized },
      { kind: 'workspace', what: foreign.path, why: 'run elsewhere is unknown', bytes: sized },
    ]);
    expect(plan.park).toEqual([{ branch: unlanded.branch, commit, commits: 1 }]);
    expect(done).toEqual({
      removed: [
        { kind: 'workspace', what: empty.path, bytes: sized },
        { kind: 'branch', what: empty.branch, bytes: 0 },
        { kind: 'workspace', what: landed.path, bytes: sized },
        { kind: 'branch', what: landed.branch, bytes: 0 },
        { kind: 'workspace', what: unlanded.path, bytes: sized },
      ],
      parked: [{ branch: unlanded.branch, commit, commits: 1 }],
      left: [],
    });
    expect(bytesToFree(plan)).toBe(done.removed.reduce((sum, { bytes }) => sum + bytes, 0));
    expect(branches()).toEqual(['main', active.branch, dirty.branch, foreign.branch, unlanded.branch]);
    for (const { path } of [active, foreign, dirty]) expect(existsSync(path)).toBe(true);
    expect((await collect()).done).toEqual({ removed: [], parked: done.parked, left: [] });
  });

  it('never touches worktrees and branches that Reprise did not make', async () => {
    const { lab, collect, branches } = await gcLab();
    lab.git('worktree', 'add', '--quiet', '-b', 'reprise/mine', lab.workspace('mine'));
    lab.git(
      'worktree',
      'add',
      '--quiet',
      '--lock',
      '--reason',
      'keep',
      '-b',
      'locked',
      lab.workspace('locked'),
    );
    lab.git('branch', 'reprise/other');
    const before = branches();
    expect((await collect()).plan).toEqual({ remove: [], park: [], leave: [] });
    expect(branches()).toEqual(before);
    expect(existsSync(lab.workspace('mine'))).toBe(true);
  });

  it('removes a branch without a workspace once its commits are on another branch', async () => {
    const { lab, make, collect, branches } = await gcLab();
    const { path, branch } = await make('one', 'ended');
    lab.commit(path, 'b.txt', 'b\n');
    lab.git('worktree', 'remove', '--force', '--force', path);
    expect((await collect()).done).toMatchObject({ removed: [], parked: [{ branch, commits: 1 }] });
    lab.git('merge', '--quiet', '--ff-only', branch);
    lab.git('worktree', 'add', '--quiet', lab.workspace('user'), branch);
    expect((await collect()).plan.leave).toEqual([
      { kind: 'branch', what: branch, why: `it is checked out in ${lab.workspace('user')}`, bytes: 0 },
    ]);
    lab.git('worktree', 'remove', lab.workspace('user'));
    expect((await collect()).done).toMatchObject({ removed: [{ kind: 'branch', what: branch }], parked: [] });
    expect(branches()).toEqual(['main']);
  });

  it('keeps work that was added after the plan was made', async () => {
    const { lab, repository, owner, make } = await gcLab();
    const [late, dirty] = [await make('late', 'ended'), await make('dirty', 'ended')];
    const plan = planGc(await gatherGcFacts({ repository, owner }), runs);
    expect(plan.remove).toHaveLength(2);
    const commit = lab.commit(late.path, 'b.txt', 'b\n');
    lab.write('c.txt', 'c\n', dirty.path);
    const done = await applyGc({ repository, owner, plan });
    expect(done.parked).toEqual([{ branch: late.branch, commit, commits: 1 }]);
    expect(done.left).toEqual([
      { kind: 'workspace', what: dirty.path, why: 'it has uncommitted changes: c.txt', bytes: sized },
    ]);
    expect(lab.git('rev-parse', late.branch)).toBe(commit);
  });

  it('removes leftovers of crashes: scratch folders, missing workspaces, incomplete worktrees', async () => {
    const { lab, repository, make, collect } = await gcLab();
    const reason = 'reprise {"kind":"landing","base":"x"}';
    lab.git('worktree', 'add', '--quiet', '--detach', '--lock', '--reason', reason, lab.workspace('scratch'));
    const lost = await make('lost', 'ended');
    rmSync(lost.path, { recursive: true });
    const unborn = join(lab.root, '.git/worktrees/unborn');
    mkdirSync(unborn);
    writeFileSync(join(unborn, 'locked'), reason);
    const { done } = await collect();
    expect(done.removed.map(({ what }) => what)).toEqual([
      lost.path,
      lost.branch,
      lab.workspace('scratch'),
      unborn,
    ]);
    expect(existsSync(lab.workspace('scratch'))).toBe(false);
    expect(existsSync(unborn)).toBe(false);
    expect(branchRecords(repository)).toEqual([]);
  });
});

describe('a garbage collection plan', () => {
  const name = fc.constantFrom('a', 'b', 'c', 'd');
  const run = fc.constantFrom('ended', 'active', 'elsewhere', undefined);
  const facts: fc.Arbitrary<GcFacts> = fc.record({
    workspaces: fc.uniqueArray(
      fc.record({
        path: name.map(each => `/w/${each}`),
        branch: name,
        run,
        empty: fc.boolean(),
        uncommitted: fc.constantFrom([], ['x']),
        bytes: fc.nat(),
      }),
      { selector: each => each.path },
    ),
    branches: fc.uniqueArray(
      fc.record({
        branch: name,
        run,
        tip: fc.constantFrom('c0ffee', undefined),
        unlanded: fc.constantFrom(0, 1, 3),
        checkedOut: fc.constantFrom(undefined, '/user'),
      }),
      { selector: each => each.branch },
    ),
    scratch: fc.constantFrom([], [{ path: '/w/scratch', bytes: 1 }]),
    landing: fc.boolean(),
    unborn: fc.constantFrom([], ['/g/unborn']),
  });

  it('never deletes a branch with unlanded commits, or anything of a run that has not ended', () => {
    fc.assert(
      fc.property(facts, given => {
        const { remove, park } = planGc(given, runs);
        const over = (each: { run: string | undefined }) => each.run === undefined || each.run === 'ended';
        for (const action of remove) {
          switch (action.kind) {
            case 'delete-branch': {
              const fact = given.branches.find(each => each.branch === action.branch);
              expect(fact && over(fact) && (fact.tip === undefined || fact.unlanded === 0)).toBe(true);
              expect(fact?.checkedOut).toBeUndefined();
              break;
            }
            case 'remove-workspace': {
              const fact = given.workspaces.find(each => each.path === action.path);
              expect(fact && over(fact) && (fact.empty || fact.uncommitted.length === 0)).toBe(true);
              break;
            }
            case 'remove-scratch':
              expect(given.landing).toBe(false);
              break;
            case 'remove-unborn':
              expect(given.unborn).toContain(action.path);
          }
        }
        for (const { branch } of park) {
          expect(remove).not.toContainEqual({ kind: 'delete-branch', branch });
        }
      }),
    );
  });
});
