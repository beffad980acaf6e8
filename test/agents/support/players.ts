import type { AgentDefinition } from '../../../src/agents/agent.ts';
import type { PermissionPolicy } from '../../../src/agents/permissions/permissions.ts';
import { agentOf, policyOf } from '../../../src/agents/test-support.ts';
import {
  acpEnvironment,
  claudeEnvironment,
  codexAcpEnvironment,
  codexEnvironment,
  copilotEnvironment,
  geminiEnvironment,
  opencodeEnvironment,
  qwenEnvironment,
  type Surroundings,
} from './environment.ts';

/** Agent of a test, with its permissions and environment. */
export interface Player {
  readonly name: string;
  readonly agent: AgentDefinition;
  readonly permissions: PermissionPolicy;
  readonly environment: (surroundings: Surroundings) => Readonly<Record<string, string>>;
}

export const claude: Player = {
  name: 'claude',
  agent: agentOf({ kind: 'claude' }),
  permissions: policyOf(),
  environment: claudeEnvironment,
};

/** Codex without rules, which runs `codex exec`. */
export const codex: Player = {
  name: 'codex',
  agent: agentOf({ kind: 'codex' }),
  permissions: policyOf(),
  environment: codexEnvironment,
};

/** Codex with a rule, which runs the app server. */
export const codexServer: Player = {
  ...codex,
  name: 'codex app-server',
  permissions: policyOf({ allow: ['Bash(npm test)'] }),
};

export const acp: Player = {
  name: 'acp',
  agent: agentOf({ kind: 'acp', command: ['claude-agent-acp'] }),
  permissions: policyOf(),
  environment: acpEnvironment,
};

const speaksAcp = (name: string, command: readonly string[], environment: Player['environment']): Player => ({
  name,
  agent: agentOf({ kind: 'acp', command }),
  permissions: policyOf(),
  environment,
});

export const codexAcp = speaksAcp('codex-acp', ['codex-acp'], codexAcpEnvironment);
export const gemini = speaksAcp('gemini', ['gemini', '--acp'], geminiEnvironment);
export const opencode = speaksAcp('opencode', ['opencode', 'acp'], opencodeEnvironment);
export const qwen = speaksAcp('qwen', ['qwen', '--acp'], qwenEnvironment);
export const copilot = speaksAcp('copilot', ['copilot', '--acp'], copilotEnvironment);
