import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdirSync } from 'node:fs';
import { join } from 'node:path';
import { resolveCommit } from '../../src/git/refs.ts';
import { openRepository } from '../../src/git/repository.ts';
import { createWorkspace } from '../../src/git/workspace/create.ts';
import { removeWorkspace } from '../../src/git/workspace/remove.ts';
import { thisProcess } from '../../src/process/table.ts';
import { contend } from '../lib/contend.ts';
import { repositoryEnvironment as env, makeRepository } from '../lib/repository.ts';

async function plainGit(folder, root) {
  const git = async (...args) => {
    const [code] = await once(spawn('git', args, { cwd: root, env, stdio: 'ignore' }), 'close');
    if (code !== 0) throw new Error(`git ${args.join(' ')} exited with ${code}`);
  };
  const pathOf = key => join(folder, 'plain', String(key));
  return {
    make: key => git('worktree', 'add', '--quiet', '-b', `plain-${key}`, pathOf(key), 'main'),
    remove: key => git('worktree', 'remove', pathOf(key)),
  };
}

async function room(folder, root) {
  const repository = await openRepository({ cwd: root, inheritEnv: env });
  const base = await resolveCommit(repository.git, 'main');
  const owner = { incarnation: 'bench', ...thisProcess() };
  const pathOf = key => join(folder, 'room', String(key));
  return {
    make: key =>
      createWorkspace({ repository, owner, path: pathOf(key), base, branch: `reprise/bench/${key}` }),
    remove: async key => {
      const { branch } = await removeWorkspace({ repository, owner, path: pathOf(key) });
      if (branch?.kind !== 'deleted') throw new Error(`workspace ${key}: ${JSON.stringify(branch)}`);
    },
  };
}

const sequentially = act => async keys => {
  for (const key of keys) await act(key);
};

const atOnce = act => keys => Promise.all(keys.map(act));

await contend({
  /**
   * Each contender has its own repository. They take turns every few workspaces, so that other load on the machine
   * affects all of them equally.
   */
  async compare({ folder, args }) {
    const [workspaces, files, batch] = args.map(Number);
    const own = async (name, contender) => {
      const place = join(folder, name);
      mkdirSync(place);
      return contender(place, makeRepository(place, files));
    };
    const [plain, single, lanes] = [
      await own('plain', plainGit),
      await own('single', room),
      await own('lanes', room),
    ];
    const contenders = [
      { name: 'plain', make: sequentially(plain.make), remove: sequentially(plain.remove) },
      { name: 'single', make: sequentially(single.make), remove: sequentially(single.remove) },
      { name: 'lanes', make: atOnce(lanes.make), remove: atOnce(lanes.remove) },
    ];
    const result = {};
    for (const phase of ['make', 'remove']) {
      for (let first = 0; first < workspaces; first += batch) {
        const keys = Array.from({ length: Math.min(batch, workspaces - first) }, (_, index) => first + index);
        for (let turn = 0; turn < contenders.length; turn++) {
          const { name, [phase]: act } = contenders[(first / batch + turn) % contenders.length];
          const before = performance.now();
          await act(keys);
          const field = `${name}${phase === 'make' ? 'Make' : 'Remove'}Ms`;
          result[field] = (result[field] ?? 0) + performance.now() - before;
        }
      }
    }
    return result;
  },
});
