import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { join, relative } from 'node:path';
import { describe, expect, it } from 'vitest';
import { changesSince, diffOf } from './diff.ts';
import { applyGc, gatherGcFacts } from './gc/apply.ts';
import { planGc } from './gc/plan.ts';
import { land } from './landing/advance.ts';
import { workspaceBranch, workspacePath } from './names.ts';
import { Lab } from './test-support.ts';
import { commitAll } from './workspace/commit.ts';
import { createWorkspace } from './workspace/create.ts';
import { removeWorkspace } from './workspace/remove.ts';

const hostileTexts = [
  `"double" 'single' \`touch broken\``,
  '$(touch broken); touch broken & | > broken',
  'two\nlines\r\n',
  '../../../escaped',
  '/etc/passwd',
  '..',
  '.',
  '',
  'nul\0byte',
  '\x1b[31mred\x1b[0m\x9b2J\x07',
  '--force',
  '-rf',
  'HEAD.lock',
  'x.lock',
  '.git',
  '.hidden',
  'a..b@{0}~^:?*[\\',
  'ünïcödé 日本語 🚀 \u202Eright to left',
  '\ud800 half a pair',
  'x'.repeat(5000),
  '日'.repeat(500),
  'con',
  ' ',
];

describe('hostile text as the name of a workflow, run and step', () => {
  it.each(hostileTexts)(
    'gives a workspace below its folder, on a branch that git accepts: %j',
    async text => {
      const lab = new Lab();
      const repository = await lab.open();
      const { owner } = lab;
      const folder = join(lab.root, '.reprise/workspaces');
      const name = { workflow: text, run: text, step: text, worker: 0 };
      const request = { path: workspacePath(folder, name), branch: workspaceBranch(name), base: 'main' };
      const { workspace } = await createWorkspace({ repository, owner, ...request, run: text, step: text });
      expect(relative(folder, workspace.path).split('/')[0]).not.toMatch(/^(\.|\.\.|)$/);
      expect(workspace.path.startsWith(`${folder}/`)).toBe(true);
      expect(lab.gitAt(workspace.path, 'rev-parse', '--abbrev-ref', 'HEAD')).toBe(workspace.branch);
      expect(workspace).toMatchObject({ run: text, step: text });
      expect(readdirSync(lab.folder)).toEqual(['the repository']);
      expect(existsSync(join(lab.root, 'broken'))).toBe(false);
      expect(await removeWorkspace({ repository, owner, path: workspace.path })).toMatchObject({
        branch: { kind: 'deleted' },
      });
      lab.git('fsck', '--strict');
    },
  );

  it('gives a different workspace for every text', () => {
    const names = hostileTexts.map(step => ({ workflow: 'w', run: 'r', step }));
    const lower = (text: string) => text.normalize('NFC').toLowerCase();
    expect(new Set(names.map(name => lower(workspacePath('/w', name)))).size).toBe(names.length);
    expect(new Set(names.map(name => lower(workspaceBranch(name)))).size).toBe(names.length);
  });
});

const hostileFiles = [
  `it's "quoted"`,
  'two\nlines',
  ' leading and trailing ',
  '-rf',
  '--force',
  '$(touch broken)',
  ':(exclude)magic',
  'ünï/日本語 🚀',
  '\x1b[31mred',
  'back\\slash',
  '*.txt',
  'R100\tx',
];

describe('files with hostile names', () => {
  async function withFiles() {
    const lab = new Lab();
    const repository = await lab.open();
    const { owner } = lab;
    const branch = 'reprise/w/one';
    const request = { repository, owner, path: lab.workspace('one'), base: 'main', branch };
    const { workspace } = await createWorkspace({ ...request, run: 'ended' });
    for (const name of hostileFiles) lab.write(name, `${name}\n`, workspace.path);
    return { lab, repository, owner, workspace };
  }

  const commit = (repository: Awaited<ReturnType<Lab['open']>>, path: string) =>
    commitAll({
      git: repository.git.with({ cwd: path }),
      message: 'Add them',
      author: { name: 'Agent', email: 'agent@example.com' },
      at: '2026-01-02T03:04:05.678Z',
    });

  it('are detected, committed, listed and landed', async () => {
    const { lab, repository, owner, workspace } = await withFiles();
    const { path, branch, base } = workspace;
    const before = await diffOf({ repository, base, head: { workspace: path } });
    expect(await removeWorkspace({ repository, owner, path })).toEqual({
      kind: 'uncommitted-changes',
      files: hostileFiles.toSorted(),
    });
    expect(await commit(repository, path)).toMatchObject({ kind: 'committed' });
    expect(await diffOf({ repository, base, head: branch })).toBe(before);
    const { files } = await changesSince(repository.git.with({ cwd: path }), { base });
    expect(files.map(({ path: name }) => name).toSorted()).toEqual(hostileFiles.toSorted());
    lab.commit(lab.root, 'main.txt', 'main moved\n');
    expect(await land({ repository, owner, source: { branch }, onto: 'main' })).toMatchObject({
      kind: 'landed',
    });
    for (const name of hostileFiles) expect(readFileSync(join(lab.root, name), 'utf8')).toBe(`${name}\n`);
    expect(lab.git('status', '--porcelain')).toBe('');
    expect(existsSync(join(lab.root, 'broken'))).toBe(false);
  });

  it('are listed without control characters if they block a landing or conflict', async () => {
    const { lab, repository, owner, workspace } = await withFiles();
    await commit(repository, workspace.path);
    const request = { repository, owner, source: { branch: workspace.branch }, onto: 'main' };
    for (const name of hostileFiles) lab.write(name, 'mine\n');
    const blocked = await land(request);
    expect(blocked).toMatchObject({
      kind: 'main-checkout-in-the-way',
      files: hostileFiles.toSorted(),
      why: expect.stringMatching(/"\\u001b\[31mred", .*, and 2 more$/u),
    });
    lab.git('add', '--all');
    lab.git('commit', '--quiet', '--message=Mine');
    const conflict = await land(request);
    expect(conflict).toMatchObject({ kind: 'conflict', files: hostileFiles.toSorted() });
    for (const landing of [blocked, conflict]) {
      expect('why' in landing && landing.why).not.toMatch(/\p{Cc}/u);
    }
  });

  it('protect their workspace from garbage collection until they are committed', async () => {
    const { repository, owner, workspace } = await withFiles();
    const plan = async () =>
      planGc(await gatherGcFacts({ repository, owner }), new Map([['ended', 'ended' as const]]));
    expect((await plan()).leave).toMatchObject([{ what: workspace.path, why: expect.any(String) }]);
    expect((await plan()).leave[0]?.why).not.toMatch(/\p{Cc}/u);
    await commit(repository, workspace.path);
    expect(await applyGc({ repository, owner, plan: await plan() })).toMatchObject({
      removed: [{ what: workspace.path }],
      parked: [{ branch: workspace.branch, commits: 1 }],
    });
  });
});
