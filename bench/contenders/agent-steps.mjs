import { execFileSync, spawn } from 'node:child_process';
import { once } from 'node:events';
import { join } from 'node:path';
import { openEngine } from '../../dist/index.js';
import { loadWorkflow } from '../../dist/workflow/yaml/load.js';
import { contend } from '../lib/contend.mjs';
import { repositoryEnvironment as env, makeRepository } from '../lib/repository.mjs';

/** Reads its prompt, changes one file and is done. */
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

/** Steps one after another, so that each pays for all of its own. */
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

async function engineMs(root, steps, workspace) {
  const workflow = chain(steps, workspace);
  const { engine, close } = await openEngine({ root, env, agents: new Map([['toy', agent]]) });
  // What is loaded once is not counted to the steps.
  await engine.start({ workflow: chain(1, workspace) });
  const before = performance.now();
  const result = await engine.start({ workflow });
  const took = performance.now() - before;
  await close();
  if (result.status !== 'completed') throw new Error(JSON.stringify(result));
  return took / steps;
}

async function end(child) {
  child.stdin?.end('Write a note.');
  const [code] = await once(child, 'close');
  if (code !== 0) throw new Error(`exited with ${code}`);
}

await contend({
  /** The agent alone, and the git commands that nobody can do without. */
  async floor({ folder, args }) {
    const [steps, files] = args.map(Number);
    const root = makeRepository(folder, files);
    let agentMs = 0;
    let worktreeMs = 0;
    let commitMs = 0;
    const timed = async act => {
      const before = performance.now();
      await act();
      return performance.now() - before;
    };
    for (let index = 0; index < steps; index++) {
      const path = join(folder, 'plain', String(index));
      const git = (cwd, ...rest) => end(spawn('git', rest, { cwd, env, stdio: 'ignore' }));
      worktreeMs += await timed(() =>
        git(root, 'worktree', 'add', '--quiet', '-b', `p${index}`, path, 'main'),
      );
      agentMs += await timed(() => end(spawn(program[0], program.slice(1), { cwd: path, env })));
      commitMs += await timed(async () => {
        await git(path, 'add', '--all');
        await git(path, 'commit', '--quiet', '--message=Note');
      });
    }
    return { agentMs: agentMs / steps, worktreeMs: worktreeMs / steps, commitMs: commitMs / steps };
  },

  async inProject({ folder, args }) {
    const [steps, files] = args.map(Number);
    return { stepMs: await engineMs(makeRepository(folder, files), steps, 'none') };
  },

  async inWorktrees({ folder, args }) {
    const [steps, files] = args.map(Number);
    const root = makeRepository(folder, files);
    const stepMs = await engineMs(root, steps, '{ base: main }');
    const branches = execFileSync('git', ['branch', '--list', 'reprise/*'], {
      cwd: root,
      env,
      encoding: 'utf8',
    });
    if (branches.trim().split('\n').length !== steps + 1) throw new Error('not every step has its branch');
    return { stepMs };
  },
});
