import type { AgentDefinition } from '../agents/agent.ts';

const plain = (kind: 'claude' | 'codex'): AgentDefinition => ({
  name: kind,
  kind,
  permissions: 'edit',
  allow: [],
  deny: [],
  args: [],
  env: {},
});

/** The agents that every project has, unless it defines its own of that name. */
export const builtInAgents: ReadonlyMap<string, AgentDefinition> = new Map([
  ['claude', plain('claude')],
  ['codex', plain('codex')],
]);
