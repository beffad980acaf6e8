import { acpSessions } from './acp/acp.ts';
import { claudeSessions } from './claude/claude.ts';
import { codexSessions } from './codex/exec.ts';
import { commandSessions } from './command.ts';
import { hasOtherSettings } from './driver/program.ts';
import { scriptedSessions } from './scripted/scripted.ts';
import type { Session, SessionFactory, SessionHost, SessionRequest } from './session.ts';

/** Opens sessions with agents of every kind. */
export const openSession: SessionFactory = (request, host) => {
  switch (request.agent.kind) {
    case 'claude':
      return claudeSessions(request, host);
    case 'codex':
      return codexSessions(request, host);
    case 'acp':
      return acpSessions(request, host);
    case 'command':
      return commandSessions(request, host);
    case 'scripted':
      return scriptedSessions(request, host);
  }
};

/**
 * Opens a session. If an earlier one changed protected files of the workspace, such as `.mcp.json`, the agent starts no
 * MCP server that they name.
 */
export async function openChecked(request: SessionRequest, host: SessionHost): Promise<Session> {
  const { kind } = request.agent;
  const isStrict = (kind === 'claude' || kind === 'acp') && (await hasOtherSettings(request, host));
  return openSession(isStrict ? { ...request, isStrict } : request, host);
}
