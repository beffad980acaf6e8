import { existsSync, readdirSync } from 'node:fs';
import { basename, join } from 'node:path';
import {
  type AgentDefinition,
  type AgentDefinitions,
  builtInAgents,
  permissionProblem,
} from '../agents/index.ts';
import { type Json, nearest } from '../core/index.ts';
import {
  agentNames,
  DefinitionError,
  type NamedAgent,
  type Problem,
  type WorkflowModel,
} from '../workflow/index.ts';
import type { Config } from '../workflow/yaml/index.ts';
import { everyTime } from './host.ts';
import { displayPath, type ProjectContext, readText } from './project.ts';

/** Returns the agents of a project and the built-in ones, by name. Throws DEFINITION_INVALID with every problem. */
export const loadAgents = (context: ProjectContext, config: Config): Promise<AgentDefinitions> =>
  (context.project.host?.once ?? everyTime)(`agents seen from ${context.io.cwd}`, () =>
    readAgents(context, config),
  );

async function readAgents(context: ProjectContext, config: Config): Promise<AgentDefinitions> {
  const files = agentFiles(context);
  const written: Json = config.agents ?? null;
  if (files.length === 0 && written === null) return builtInAgents;
  const { parseAgents } = await import('../agents/definitions.ts');
  return new Map([...builtInAgents, ...parseAgents({ config: written, files })]);
}

/**
 * Returns the agents for a workflow. If it names none, the result is empty and no file is read. Throws
 * DEFINITION_INVALID if the workflow names an unknown agent, or sets permissions that an agent cannot enforce.
 */
export async function agentsFor(
  model: WorkflowModel,
  context: ProjectContext,
  config: () => Promise<Config>,
): Promise<AgentDefinitions> {
  const named = agentNames(model);
  if (named.length === 0) return new Map();
  const agents = await loadAgents(context, await config());
  const problems = named.flatMap(each => {
    const agent = agents.get(each.name);
    return agent ? unenforceable(each, agent) : [missing(each, agents)];
  });
  if (problems.length > 0) throw new DefinitionError(problems);
  return agents;
}

function unenforceable(
  { step, position, permissions }: NamedAgent,
  agent: AgentDefinition,
): readonly Problem[] {
  const problem = permissionProblem(agent, permissions);
  return problem ? [{ ...problem, message: `step \`${step}\`: ${problem.message}`, position }] : [];
}

function missing({ name, step, position }: NamedAgent, agents: AgentDefinitions): Problem {
  const guess = nearest(name, agents.keys());
  return {
    message: `unknown agent \`${name}\` in step \`${step}\``,
    hint: guess
      ? `did you mean \`${guess}\`?`
      : `define it under \`agents\` in reprise.yaml or in .reprise/agents/${name}.md; known agents: ${[...agents.keys()].join(', ')}`,
    position,
  };
}

function agentFiles({
  project,
  io,
}: ProjectContext): readonly { readonly name: string; readonly text: string }[] {
  const folder = join(project.root, '.reprise', 'agents');
  if (!existsSync(folder)) return [];
  const refuse = (problem: Problem) => new DefinitionError([problem]);
  return readdirSync(folder)
    .filter(file => file.endsWith('.md'))
    .sort()
    .map(file => {
      const path = join(folder, file);
      return {
        name: basename(file, '.md'),
        text: readText({ file: path, displayFile: displayPath(io, path), refuse }),
      };
    });
}
