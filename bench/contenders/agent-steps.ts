import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdirSync } from 'node:fs';
import { basename, join } from 'node:path';
import type { AgentDefinition } from '../../src/agents/index.ts';
import { type OpenedEngine, openEngine } from '../../src/index.ts';
import { loadWorkflow } from '../../src/workflow/yaml/load.ts';
import { contend } from '../lib/contend.ts';
import { repositoryEnvironment as env, makeRepository } from '../lib/repository.ts';
import { means, medians } from '../lib/stats.ts';

/** Reads its prompt, changes one file and exits. */
const [shell, ...script] = ['sh', '-c', 'cat > note.txt; echo done'] as const;

const agent: AgentDefinition = {
  name: 'toy',
  kind: 'command',
  permissions: 'edit',
  allow: [],
  deny: [],
  command: [shell, ...script],
  args: [],
  env: {},
};

/** Steps in sequence, so that no cost is shared between them. */
function chain(steps: number, workspace: 'none' | 'worktree') {
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

async function end(child: ChildProcess) {
  child.stdin?.end('Write a note.');
  const [code] = await once(child, 'close');
  if (code !== 0) throw new Error(`exited with ${code}`);
}

async function timed(act: () => Promise<unknown>) {
  const before = performance.now();
  await act();
  return performance.now() - before;
}

/** The agent alone, and the git command that creates its worktree. */
async function plain(root: string, path: string) {
  const git = (cwd: string, ...rest: readonly string[]) =>
    end(spawn('git', rest, { cwd, env, stdio: 'ignore' }));
  const branch = `plain-${basename(path)}`;
  return {
    worktreeMs: await timed(() => git(root, 'worktree', 'add', '--quiet', '-b', branch, path, 'main')),
    agentMs: await timed(() => end(spawn(shell, script, { cwd: path, env }))),
  };
}

/** Milliseconds of one step, by contender. */
type StepTimes = Record<`${'agent' | 'worktree' | 'inProject' | 'inWorktrees'}Ms`, number>;

const named = <End extends string>(end: End, times: StepTimes) =>
  Object.fromEntries(Object.entries(times).map(([name, ms]) => [`${name}${end}`, ms])) as {
    [Name in keyof StepTimes as `${Name}${End}`]: number;
  };

export const methods = {
  /** The contenders take turns every few steps, so that other load on the machine and its disk affects them equally. */
  async compare(folder: string, turns: number, steps: number, files: number) {
    const own = (name: string) => {
      const place = join(folder, name);
      mkdirSync(place);
      return makeRepository(place, files);
    };
    const roots = { plain: own('plain'), inProject: own('project'), inWorktrees: own('worktrees') };
    const agents = new Map([['toy', agent]]);
    const project = await openEngine({ root: roots.inProject, env, agents });
    const worktrees = await openEngine({ root: roots.inWorktrees, env, agents });
    const run = async ({ engine }: OpenedEngine, ...shape: Parameters<typeof chain>) => {
      const result = await engine.start({ workflow: chain(...shape) });
      if (result.status !== 'completed') throw new Error(JSON.stringify(result));
    };
    // Modules that are loaded once do not count as part of a step.
    await run(project, 1, 'none');
    await run(worktrees, 1, 'worktree');
    const rounds: StepTimes[] = [];
    for (let turn = 0; turn < turns; turn++) {
      let [agentMs, worktreeMs] = [0, 0];
      for (let index = 0; index < steps; index++) {
        const path = join(folder, 'plain', `${turn}-${index}`);
        const alone = await plain(roots.plain, path);
        agentMs += alone.agentMs / steps;
        worktreeMs += alone.worktreeMs / steps;
      }
      const inProjectMs = (await timed(() => run(project, steps, 'none'))) / steps;
      const inWorktreesMs = (await timed(() => run(worktrees, steps, 'worktree'))) / steps;
      rounds.push({ agentMs, worktreeMs, inProjectMs, inWorktreesMs });
    }
    await project.close();
    await worktrees.close();
    return { ...named('Mean', means(rounds)), ...named('Median', medians(rounds)) };
  },
};

await contend(methods);
