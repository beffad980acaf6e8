import type { AgentDefinition } from './agent.ts';
import type { Session, SessionFactory } from './session.ts';

/** Sessions with agents of every kind; the code that talks to agents is loaded with the first of them. */
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

/** The agents that every project has, unless it defines its own of that name. */
export const builtInAgents: ReadonlyMap<string, AgentDefinition> = new Map([
  ['claude', plain('claude')],
  ['codex', plain('codex')],
]);
