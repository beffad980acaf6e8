import { RepriseError } from '../core/errors.ts';
import { nearest } from '../core/suggest.ts';
import { isBranchName } from '../git/names.ts';
import { branchTip } from '../git/refs.ts';
import { openRepository, type Repository } from '../git/repository.ts';
import { shellWord } from '../terminal/words.ts';
import type { WorkerRules } from '../worker/contract.ts';
import type { Config } from '../workflow/yaml/config.ts';
import { defaultTaskSource, defaultWorkerSettings } from '../workflow/yaml/config-workers.ts';
import type { Agents } from './agents.ts';
import { type CommandIo, everyTime } from './host.ts';
import type { Project } from './project.ts';

interface Place {
  readonly io: CommandIo;
  readonly project: Project;
  readonly config: Config;
  readonly agents: Agents;
}

/** How workers work here: flags, then settings, then what the repository suggests. Throws USAGE, NOT_A_REPOSITORY. */
export const workerRules = (
  place: Place,
  { branch, agent }: { readonly branch?: string | undefined; readonly agent?: string | undefined },
): Promise<WorkerRules> =>
  (place.project.host?.once ?? everyTime)(`rules for workers ${JSON.stringify([branch, agent])}`, () =>
    decideRules(place, { branch, agent }),
  );

async function decideRules(
  { io, project, config, agents }: Place,
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
    ...(agent === undefined ? {} : { agent }),
  };
}

function noAgent(name: string, agents: Agents): RepriseError {
  const guess = nearest(name, agents.keys());
  return new RepriseError('USAGE', `there is no agent ${name}`, {
    hint: guess
      ? `did you mean ${guess}?`
      : `there are ${[...agents.keys()].join(', ')}; define others in .reprise/agents, or begin with: reprise init`,
  });
}

async function landingBranch(repository: Repository, wanted: string | undefined): Promise<string> {
  if (wanted !== undefined) {
    if (!isBranchName(wanted))
      throw new RepriseError('USAGE', `${JSON.stringify(wanted)} is not a name that a branch can have`);
    if ((await branchTip(repository, wanted)) !== undefined) return wanted;
    throw await noBranch(repository, wanted);
  }
  if ((await branchTip(repository, 'main')) !== undefined) return 'main';
  const current = await currentBranch(repository);
  if (current === undefined) {
    throw new RepriseError('USAGE', 'there is no branch main, and no branch is checked out', {
      hint: 'say what to land on: reprise worker --branch <branch>',
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
    return new RepriseError('USAGE', `the repository has no commit yet, so there is nothing to work on`, {
      hint: 'make one first: git add --all && git commit -m "Begin"',
    });
  return new RepriseError('USAGE', `there is no branch ${name}`, {
    hint: `make it first: git branch ${shellWord(name)}${current ? `; or work on ${current}: --branch ${shellWord(current)}` : ''}`,
  });
}
