import { RepriseError } from '../core/errors.ts';
import type { AgentDefinition, AgentKind } from './agent.ts';
import { nativeCodex } from './driver/program.ts';
import { findProgram, type WhereToLook } from './find-program.ts';

const usual: Readonly<Record<AgentKind, string | undefined>> = {
  claude: 'claude',
  codex: 'codex',
  acp: undefined,
  command: undefined,
  scripted: undefined,
};

/** The program with its first arguments, as it was written or as usual. */
export function commandOf({ kind, command }: AgentDefinition): readonly string[] {
  if (command && command.length > 0) return command;
  const program = usual[kind];
  return program === undefined ? [] : [program];
}

const installs: Readonly<Record<string, string>> = {
  claude: 'npm install -g @anthropic-ai/claude-code',
  codex: 'npm install -g @openai/codex',
  gemini: 'npm install -g @google/gemini-cli',
  opencode: 'npm install -g opencode-ai',
  qwen: 'npm install -g @qwen-code/qwen-code',
  copilot: 'npm install -g @github/copilot',
  'claude-agent-acp': 'npm install -g @agentclientprotocol/claude-agent-acp',
  'codex-acp': 'npm install -g @agentclientprotocol/codex-acp',
};

/** What to type to have a program. */
export const howToInstall = (program: string): string => {
  const command = Object.hasOwn(installs, program) ? installs[program] : undefined;
  return command ? `install it: ${command}` : `install \`${program}\`, or correct \`command\` and PATH`;
};

/** The file to start for the first word of an argument list. Throws AGENT_NOT_FOUND. */
export function locateProgram(agent: AgentDefinition, argv: readonly string[], where: WhereToLook): string {
  const name = argv[0] ?? '';
  const found = findProgram(name, where);
  if (found === undefined) {
    throw new RepriseError(
      'AGENT_NOT_FOUND',
      `the agent \`${agent.name}\` needs \`${name}\`, which was not found`,
      {
        hint: howToInstall(name),
      },
    );
  }
  return agent.kind === 'codex' ? (nativeCodex(found) ?? found) : found;
}
