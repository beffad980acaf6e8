import { existsSync, readdirSync } from 'node:fs';
import { basename, join } from 'node:path';
import type { AgentDefinition } from '../agents/agent.ts';
import { builtInAgents } from '../agents/open-session.ts';
import type { Json } from '../core/json.ts';
import { nearest } from '../core/suggest.ts';
import type { WorkflowModel } from '../workflow/model.ts';
import { agentNames, DefinitionError, type NamedAgent, type Problem } from '../workflow/problems.ts';
import type { Config } from '../workflow/yaml/config.ts';
import { type CommandIo, everyTime } from './host.ts';
import { displayPath, type Project, readText } from './project.ts';

export type Agents = ReadonlyMap<string, AgentDefinition>;

interface Place {
  readonly project: Project;
  readonly io: CommandIo;
}

/** The agents of a project and the built-in ones, by name. Throws DEFINITION_INVALID with every problem. */
export const loadAgents = (place: Place, config: Config): Promise<Agents> =>
  (place.project.host?.once ?? everyTime)(`agents seen from ${place.io.cwd}`, () =>
    readAgents(place, config),
  );

async function readAgents(place: Place, config: Config): Promise<Agents> {
  const files = agentFiles(place);
  const written: Json = config.agents ?? null;
  if (files.length === 0 && written === null) return builtInAgents;
  const { parseAgents } = await import('../agents/definitions.ts');
  return new Map([...builtInAgents, ...parseAgents({ config: written, files })]);
}

/**
 * The agents that a workflow may call, none if it calls none: then nothing of the project is read. Throws
 * DEFINITION_INVALID if one that it names does not exist.
 */
export async function agentsFor(
  model: WorkflowModel,
  place: Place,
  config: () => Promise<Config>,
): Promise<Agents> {
  const named = agentNames(model);
  if (named.length === 0) return new Map();
  const agents = await loadAgents(place, await config());
  const problems = named.filter(({ name }) => !agents.has(name)).map(each => missing(each, agents));
  if (problems.length > 0) throw new DefinitionError(problems);
  return agents;
}

function missing({ name, step, position }: NamedAgent, agents: Agents): Problem {
  const guess = nearest(name, agents.keys());
  return {
    message: `step \`${step}\` names the agent \`${name}\`, which does not exist`,
    hint: guess
      ? `did you mean \`${guess}\`?`
      : `define it under \`agents\` in reprise.yaml or in .reprise/agents/${name}.md; there are ${[...agents.keys()].join(', ')}`,
    position,
  };
}

function agentFiles({ project, io }: Place): readonly { readonly name: string; readonly text: string }[] {
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
