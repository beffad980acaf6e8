import type { AgentDefinitions } from '../agents/index.ts';
import { nearest, RepriseError } from '../core/index.ts';
import { branchTip, isBranchName, openRepository, type Repository } from '../git/index.ts';
import { shellWord } from '../terminal/index.ts';
import type { WorkerRules } from '../worker/index.ts';
import { type Config, defaultTaskSource, defaultWorkerSettings } from '../workflow/yaml/index.ts';

import { type CommandIo, everyTime } from './host.ts';
import type { Project } from './project.ts';

interface WorkerRulesContext {
  readonly io: CommandIo;
  readonly project: Project;
  readonly config: Config;
  readonly agents: AgentDefinitions;
}

/** Resolves the rules from flags, then settings, then the repository. Throws USAGE, NOT_A_REPOSITORY. */
export const workerRules = (
  context: WorkerRulesContext,
  { branch, agent }: { readonly branch?: string | undefined; readonly agent?: string | undefined },
): Promise<WorkerRules> =>
  (context.project.host?.once ?? everyTime)(`rules for workers ${JSON.stringify([branch, agent])}`, () =>
    decideRules(context, { branch, agent }),
  );

async function decideRules(
  { io, project, config, agents }: WorkerRulesContext,
  flags: { readonly branch?: string | undefined; readonly agent?: string | undefined },
): Promise<WorkerRules> {
  const settings = config.workers ?? defaultWorkerSettings;
  const repository = await openRepository({ cwd: project.root, inheritEnv: io.env });
  const branch = await landingBranch(repository, flags.branch ?? settings.branch);
  const agent = flags.agent ?? settings.agent;
  if (agent !== undefined && !agents.has(agent)) throw noAgent(agent, agents);
  if (settings.dispatch === 'agent' && !agents.has('dispatch')) throw noAgent('dispatch', agents);
  return {
    ...settings,
    branch,
    tasks: config.tasks ?? defaultTaskSource,
    ...(config.budget ? { taskBudget: config.budget } : {}),
    ...(agent === undefined ? {} : { agent }),
  };
}

function noAgent(name: string, agents: AgentDefinitions): RepriseError {
  const guess = nearest(name, agents.keys());
  return new RepriseError('USAGE', `unknown agent ${name}`, {
    hint: guess
      ? `did you mean ${guess}?`
      : `known agents: ${[...agents.keys()].join(', ')}; define others in .reprise/agents, or create some with: reprise init`,
  });
}

async function landingBranch(repository: Repository, wanted: string | undefined): Promise<string> {
  if (wanted !== undefined) {
    if (!isBranchName(wanted))
      throw new RepriseError('USAGE', `${JSON.stringify(wanted)} is not a valid branch name`);
    if ((await branchTip(repository, wanted)) !== undefined) return wanted;
    throw await noBranch(repository, wanted);
  }
  if ((await branchTip(repository, 'main')) !== undefined) return 'main';
  const current = await currentBranch(repository);
  if (current === undefined) {
    throw new RepriseError('USAGE', 'branch main does not exist, and no branch is checked out', {
      hint: 'name the branch to land on: reprise worker --branch <branch>',
    });
  }
  if ((await branchTip(repository, current)) !== undefined) return current;
  throw await noBranch(repository, current);
}

async function currentBranch({ git }: Repository): Promise<string | undefined> {
  const { stdout } = await git.run(['symbolic-ref', '--quiet', '--short', 'HEAD']);
  return stdout.trim() || undefined;
}

async function noBranch(repository: Repository, name: string): Promise<RepriseError> {
  const current = await currentBranch(repository);
  const isEmpty = (await repository.git.run(['rev-parse', '--verify', '--quiet', 'HEAD'])).code !== 0;
  if (isEmpty && (current === name || current === undefined))
    return new RepriseError('USAGE', 'the repository has no commits yet', {
      hint: 'create the first one: git add --all && git commit -m "Initial commit"',
    });
  return new RepriseError('USAGE', `branch ${name} does not exist`, {
    hint: `create it: git branch ${shellWord(name)}${current ? `; or use ${current}: --branch ${shellWord(current)}` : ''}`,
  });
}
