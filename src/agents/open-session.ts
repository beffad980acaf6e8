import type { StepPermissions } from '../workflow/index.ts';
import type { AgentDefinition } from './agent.ts';
import { type Session, type SessionFactory, suspendSession } from './session.ts';

type Open = (...args: Parameters<SessionFactory>) => Session | Promise<Session>;

/** Opens sessions with code that is loaded when the first of them begins. */
export const deferred =
  (load: () => Promise<Open>): SessionFactory =>
  (request, host) => {
    let opened: Promise<Session> | undefined;
    const session = () => {
      opened ??= load().then(open => open(request, host));
      return opened;
    };
    return {
      next: async answer => (await session()).next(answer),
      suspend: hurry => void session().then(started => suspendSession(started, hurry)),
      cancel: async () => (await session()).cancel(),
      close: async () => {
        if (opened) await (await opened).close();
      },
    };
  };

/** Opens sessions with agents of every kind. */
export const lazySessions: SessionFactory = deferred(async () => (await import('./kinds.ts')).openChecked);

const plain = (kind: 'claude' | 'codex'): AgentDefinition => ({
  name: kind,
  kind,
  permissions: 'edit',
  allow: [],
  deny: [],
  args: [],
  env: {},
});

/** Whether the definition of an agent or of a step sets permissions. Otherwise the defaults apply. */
export const hasPermissions = (
  { isRestricted, permissions, allow, deny }: AgentDefinition,
  step?: StepPermissions,
): boolean =>
  isRestricted === true || permissions !== 'edit' || allow.length + deny.length > 0 || step !== undefined;

/** Explains why the permissions that are set for an agent cannot be enforced; `undefined` if they can. */
export function permissionProblem(agent: AgentDefinition, step?: StepPermissions) {
  if (agent.kind !== 'command' || !hasPermissions(agent, step)) return undefined;
  return {
    message: `the permissions of the agent \`${agent.name}\` cannot be enforced: Reprise cannot restrict a program of \`kind: command\``,
    hint: 'remove the permissions, or use another kind of agent',
  };
}

/** Agents that every project has. A project can redefine them by name. */
export const builtInAgents: ReadonlyMap<string, AgentDefinition> = new Map([
  ['claude', plain('claude')],
  ['codex', plain('codex')],
]);
