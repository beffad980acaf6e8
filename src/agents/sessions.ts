import { acpSessions } from './acp.ts';
import { claudeSessions } from './claude.ts';
import { codexSessions } from './codex.ts';
import { commandSessions } from './command.ts';
import type { SessionFactory } from './port.ts';
import { scriptedSessions } from './scripted.ts';

/** Sessions with agents of every kind. */
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
