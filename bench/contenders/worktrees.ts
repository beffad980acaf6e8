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

/** Creates and removes the worktree of a key. */
interface Worktrees {
  make(key: number): Promise<unknown>;
  remove(key: number): Promise<unknown>;
}

async function plainGit(folder: string, root: string): Promise<Worktrees> {
  const git = async (...args: readonly string[]) => {
    const [code] = await once(spawn('git', args, { cwd: root, env, stdio: 'ignore' }), 'close');
    if (code !== 0) throw new Error(`git ${args.join(' ')} exited with ${code}`);
  };
  const pathOf = (key: number) => join(folder, 'plain', String(key));
  return {
    make: key => git('worktree', 'add', '--quiet', '-b', `plain-${key}`, pathOf(key), 'main'),
    remove: key => git('worktree', 'remove', pathOf(key)),
  };
}

async function room(folder: string, root: string): Promise<Worktrees> {
  const repository = await openRepository({ cwd: root, inheritEnv: env });
  const base = await resolveCommit(repository.git, 'main');
  if (base === undefined) throw new Error('the repository has no main');
  const owner = { incarnation: 'bench', ...thisProcess() };
  const pathOf = (key: number) => join(folder, 'room', String(key));
  return {
    make: key =>
      createWorkspace({ repository, owner, path: pathOf(key), base, branch: `reprise/bench/${key}` }),
    remove: async key => {
      const removal = await removeWorkspace({ repository, owner, path: pathOf(key) });
      if (removal.kind !== 'removed' || removal.branch?.kind !== 'deleted')
        throw new Error(`workspace ${key}: ${JSON.stringify(removal)}`);
    },
  };
}

type Act = Worktrees['make'];

const sequentially = (act: Act) => async (keys: readonly number[]) => {
  for (const key of keys) await act(key);
};

const atOnce = (act: Act) => (keys: readonly number[]) => Promise.all(keys.map(act));

export const methods = {
  /**
   * Each contender has its own repository. They take turns every few workspaces, so that other load on the machine
   * affects all of them equally.
   */
  async compare(folder: string, workspaces: number, files: number, batch: number) {
    const own = async (name: string, contender: typeof room) => {
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
      { name: 'plain', Make: sequentially(plain.make), Remove: sequentially(plain.remove) },
      { name: 'single', Make: sequentially(single.make), Remove: sequentially(single.remove) },
      { name: 'lanes', Make: atOnce(lanes.make), Remove: atOnce(lanes.remove) },
    ] as const;
    const result = {
      ...{ plainMakeMs: 0, plainRemoveMs: 0 },
      ...{ singleMakeMs: 0, singleRemoveMs: 0 },
      ...{ lanesMakeMs: 0, lanesRemoveMs: 0 },
    };
    for (const phase of ['Make', 'Remove'] as const) {
      for (let first = 0; first < workspaces; first += batch) {
        const keys = Array.from({ length: Math.min(batch, workspaces - first) }, (_, index) => first + index);
        const next = (first / batch) % contenders.length;
        for (const { name, [phase]: act } of [...contenders.slice(next), ...contenders.slice(0, next)]) {
          const before = performance.now();
          await act(keys);
          result[`${name}${phase}Ms` as const] += performance.now() - before;
        }
      }
    }
    return result;
  },
};

await contend(methods);
