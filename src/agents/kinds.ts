import { acpSessions } from './acp/acp.ts';
import { claudeSessions } from './claude/claude.ts';
import { codexSessions } from './codex/exec.ts';
import { commandSessions } from './command.ts';
import { scriptedSessions } from './scripted/scripted.ts';
import type { SessionFactory } from './session.ts';

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
