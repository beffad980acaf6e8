import type { Launch } from './driver/protocol.ts';
import { commandOf } from './program.ts';
import { systemPromptOf } from './prompt.ts';
import type { SessionRequest } from './session.ts';

const editingTools = ['Edit', 'Write', 'NotebookEdit'];

/** Claude Code in its two-way mode: it asks us about every tool that its own settings do not allow. */
export function claudeLaunch(request: SessionRequest): Launch {
  const { agent, outputSchema, maxTurns } = request;
  const systemPrompt = systemPromptOf(request);
  const denied = deniedTools(request);
  return {
    argv: [
      ...commandOf(agent),
      '-p',
      ...['--input-format', 'stream-json', '--output-format', 'stream-json', '--verbose'],
      ...['--permission-prompt-tool', 'stdio', '--permission-mode', 'default'],
      ...(agent.model ? ['--model', agent.model] : []),
      ...(systemPrompt ? ['--append-system-prompt', systemPrompt] : []),
      ...(outputSchema ? ['--json-schema', JSON.stringify(outputSchema)] : []),
      ...(maxTurns === undefined ? [] : ['--max-turns', String(maxTurns)]),
      ...(denied.length > 0 ? ['--disallowedTools', ...denied] : []),
      ...sessionArguments(request),
      ...agent.args,
    ],
    stdin: 'open',
    // It refuses to start inside of itself, which is where people often start us.
    env: { CLAUDECODE: undefined },
  };
}

function sessionArguments({ sessionId, resume }: SessionRequest): readonly string[] {
  const chosen = sessionId === undefined ? [] : ['--session-id', sessionId];
  if (!resume) return chosen;
  return ['--resume', resume.sessionId, ...(resume.fork ? ['--fork-session', ...chosen] : [])];
}

/** What it must not do even where the repository's settings allow it without asking. */
function deniedTools({ permissions: { preset, allow, deny } }: SessionRequest): readonly string[] {
  const isAllowed = (tool: string) => allow.some(rule => rule === tool || rule.startsWith(`${tool}(`));
  const editing =
    preset === 'read-only' && !isAllowed('Edit') ? editingTools.filter(tool => !isAllowed(tool)) : [];
  return [...editing, ...deny];
}
