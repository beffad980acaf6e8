import type { AgentDefinition } from './agent.ts';
import type { Session, SessionFactory } from './session.ts';

/** Opens sessions with agents of every kind. Loads the adapters with the first session. */
export const lazySessions: SessionFactory = (request, host) => {
  let opened: Promise<Session> | undefined;
  const session = () => {
    opened ??= import('./kinds.ts').then(({ openSession }) => openSession(request, host));
    return opened;
  };
  return {
    next: async answer => (await session()).next(answer),
    cancel: async () => (await session()).cancel(),
    close: async () => {
      if (opened) await (await opened).close();
    },
  };
};

const plain = (kind: 'claude' | 'codex'): AgentDefinition => ({
  name: kind,
  kind,
  permissions: 'edit',
  allow: [],
  deny: [],
  args: [],
  env: {},
});

/** Agents that every project has. A project can redefine them by name. */
export const builtInAgents: ReadonlyMap<string, AgentDefinition> = new Map([
  ['claude', plain('claude')],
  ['codex', plain('codex')],
]);
