import type { AgentDefinition } from '../agents/agent.ts';
import { type AgentCheckup, inspectAgent } from '../agents/doctor.ts';
import { builtInAgents } from '../agents/open-session.ts';
import { toErrorData } from '../core/errors.ts';
import { loadAgents } from '../project/agents.ts';
import { readConfig } from '../project/project.ts';
import type { Finding, Patient } from './checkups.ts';

/**
 * Which agents can be used: those of the project and the built-in ones. One that the project defines and that cannot
 * work is a failure; one that only might be used is worth a warning.
 */
export async function inspectAgents(patient: Patient): Promise<readonly Finding[]> {
  const { io, project } = patient;
  const agents = await agentsOf(patient);
  if (!(agents instanceof Map)) return [agents as Finding];
  const options = { path: io.env['PATH'], env: io.env, cwd: project.root };
  return Promise.all(
    [...agents.values()].map(async agent => findingOf(agent, await inspectAgent(agent, options))),
  );
}

async function agentsOf({ io, project }: Patient): Promise<ReadonlyMap<string, AgentDefinition> | Finding> {
  try {
    return new Map(await loadAgents({ io, project }, await readConfig(project, io)));
  } catch (thrown) {
    const { message } = toErrorData(thrown);
    return { name: 'agents', level: 'fail', message, next: 'correct it, then: reprise validate' };
  }
}

function findingOf(agent: AgentDefinition, checkup: AgentCheckup): Finding {
  const { program, version, usable, problem, whatToDo } = checkup;
  const name = `agent ${agent.name}`;
  const kind = agent.name === agent.kind ? '' : `${agent.kind}, `;
  if (usable) {
    const message = [version, program].filter(Boolean).join(', ');
    return { name, level: 'ok', message: `${kind}${message || 'ready'}` };
  }
  return {
    name,
    level: builtInAgents.get(agent.name) === agent ? 'warn' : 'fail',
    message: `${kind}${problem ?? 'cannot be used'}`,
    ...(whatToDo ? { next: whatToDo } : {}),
  };
}
