import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdirSync } from 'node:fs';
import { basename, join } from 'node:path';
import { openEngine } from '../../src/index.ts';
import { loadWorkflow } from '../../src/workflow/yaml/load.ts';
import { contend } from '../lib/contend.ts';
import { repositoryEnvironment as env, makeRepository } from '../lib/repository.ts';
import { means, medians } from '../lib/stats.ts';

/** Reads its prompt, changes one file and exits. */
const program = ['sh', '-c', 'cat > note.txt; echo done'];

const agent = {
  name: 'toy',
  kind: 'command',
  permissions: 'edit',
  allow: [],
  deny: [],
  command: program,
  args: [],
  env: {},
};

/** Steps in sequence, so that no cost is shared between them. */
function chain(steps, workspace) {
  const lines = Array.from({ length: steps }, (_, index) =>
    [
      `  - id: s${index}`,
      ...(index === 0 ? [] : [`    needs: [s${index - 1}]`]),
      '    agent: toy',
      `    prompt: Write note ${index}.`,
      `    workspace: ${workspace}`,
    ].join('\n'),
  );
  return loadWorkflow({ file: '/chain.yaml', text: `name: chain\nsteps:\n${lines.join('\n')}\n` });
}

async function end(child) {
  child.stdin?.end('Write a note.');
  const [code] = await once(child, 'close');
  if (code !== 0) throw new Error(`exited with ${code}`);
}

async function timed(act) {
  const before = performance.now();
  await act();
  return performance.now() - before;
}

/** The agent alone, and the git command that creates its worktree. */
async function plain(root, path) {
  const git = (cwd, ...rest) => end(spawn('git', rest, { cwd, env, stdio: 'ignore' }));
  const branch = `plain-${basename(path)}`;
  return {
    worktreeMs: await timed(() => git(root, 'worktree', 'add', '--quiet', '-b', branch, path, 'main')),
    agentMs: await timed(() => end(spawn(program[0], program.slice(1), { cwd: path, env }))),
  };
}

await contend({
  /** The contenders take turns every few steps, so that other load on the machine and its disk affects them equally. */
  async compare({ folder, args }) {
    const [turns, steps, files] = args.map(Number);
    const own = name => {
      const place = join(folder, name);
      mkdirSync(place);
      return makeRepository(place, files);
    };
    const roots = { plain: own('plain'), inProject: own('project'), inWorktrees: own('worktrees') };
    const agents = new Map([['toy', agent]]);
    const project = await openEngine({ root: roots.inProject, env, agents });
    const worktrees = await openEngine({ root: roots.inWorktrees, env, agents });
    const run = async ({ engine }, workspace, count) => {
      const result = await engine.start({ workflow: chain(count, workspace) });
      if (result.status !== 'completed') throw new Error(JSON.stringify(result));
    };
    // Modules that are loaded once do not count as part of a step.
    await run(project, 'none', 1);
    await run(worktrees, 'worktree', 1);
    const rounds = [];
    for (let turn = 0; turn < turns; turn++) {
      const sums = { agentMs: 0, worktreeMs: 0 };
      for (let index = 0; index < steps; index++) {
        const path = join(folder, 'plain', `${turn}-${index}`);
        for (const [name, ms] of Object.entries(await plain(roots.plain, path))) sums[name] += ms;
      }
      sums.inProjectMs = await timed(() => run(project, 'none', steps));
      sums.inWorktreesMs = await timed(() => run(worktrees, 'worktree', steps));
      rounds.push(Object.fromEntries(Object.entries(sums).map(([name, ms]) => [name, ms / steps])));
    }
    await project.close();
    await worktrees.close();
    const named = (end, stats) =>
      Object.fromEntries(Object.entries(stats).map(([name, ms]) => [`${name}${end}`, ms]));
    return { ...named('Mean', means(rounds)), ...named('Median', medians(rounds)) };
  },
});
