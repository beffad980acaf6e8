import { randomUUID } from 'node:crypto';
import type { Json } from '../../core/index.ts';
import { unusableTools } from '../claude/claude.ts';
import { failed, protocolError } from '../driver/failures.ts';
import { at, listAt, type RpcId, type Signal, send, textAt, verdict } from '../driver/protocol.ts';
import type { PermissionPolicy } from '../permissions/permissions.ts';
import type { SessionRequest } from '../session.ts';

export const ids = { initialize: 1, session: 2, prompt: 3, authenticate: 4, mode: 5 } as const;

export const call = (id: RpcId, method: string, params: Json) => send({ jsonrpc: '2.0', id, method, params });

/** Opens or resumes a session, with `session/load` for agents that can only replay the whole conversation. */
export function openSession(request: SessionRequest, answer: Json): Signal {
  const { resume } = request;
  const can = (name: string) => at(answer, 'agentCapabilities', 'sessionCapabilities', name) !== undefined;
  const params = sessionParameters(request);
  if (at(answer, 'protocolVersion') !== 1) {
    return verdict(
      failed(protocolError('the agent does not support version 1 of the protocol', 'update the agent')),
    );
  }
  if (!resume) return call(ids.session, 'session/new', params);
  const { sessionId } = resume;
  if (resume.fork) {
    return can('fork')
      ? call(ids.session, 'session/fork', { sessionId, ...params })
      : cannot('fork a session');
  }
  if (can('resume')) return call(ids.session, 'session/resume', { sessionId, ...params });
  return loadSession(request, answer) ?? cannot('resume a session');
}

/** Resumes a session by replaying it. Returns `undefined` if the agent does not support that. */
export function loadSession(request: SessionRequest, answer: Json): Signal | undefined {
  const { resume } = request;
  if (!resume || resume.fork || at(answer, 'agentCapabilities', 'loadSession') !== true) return undefined;
  return call(ids.session, 'session/load', { sessionId: resume.sessionId, ...sessionParameters(request) });
}

/** The metadata is for claude-agent-acp. Other agents ignore it. */
const sessionParameters = ({ cwd, isStrict }: SessionRequest) => ({
  cwd,
  mcpServers: [],
  // For claude-agent-acp. Other agents ignore it.
  _meta: {
    claudeCode: {
      options: { disallowedTools: [...unusableTools], ...(isStrict ? { strictMcpConfig: true } : {}) },
    },
  },
});

/** Returns arguments that make Gemini CLI and Qwen Code start no MCP server: no settings can name the allowed one. */
export function strictArguments({ agent, isStrict }: SessionRequest): readonly string[] {
  const isKnown = [...(agent.command ?? []), ...agent.args].some(word =>
    /(^|\/)(gemini|qwen)([.@-]|$)/.test(word),
  );
  return isStrict && isKnown ? ['--allowed-mcp-server-names', `none-${randomUUID()}`] : [];
}

const cannot = (what: string): Signal =>
  verdict(failed({ code: 'AGENT_FAILED', message: `the agent cannot ${what}`, hint: 'start a new session' }));

/**
 * Authenticates with a key from the environment, which some agents demand before a session. Returns `undefined` if the
 * agent has no such method, because every other one needs a person.
 */
export function authenticate(answer: Json): Signal | undefined {
  const isByKey = (method: Json) =>
    at(method, '_meta', 'api-key') !== undefined ||
    textAt(method, 'type') === 'env_var' ||
    /api.?key/i.test(`${textAt(method, 'id') ?? ''} ${textAt(method, 'name') ?? ''}`);
  const methodId = textAt(listAt(answer, 'authMethods').find(isByKey), 'id');
  return methodId === undefined ? undefined : call(ids.authenticate, 'authenticate', { methodId });
}

/** Modes in which Codex enforces a preset. Its default mode edits and runs commands without asking. */
const enforcingModes: Readonly<Record<PermissionPolicy['preset'], string | undefined>> = {
  'read-only': 'read-only',
  edit: 'workspace-write',
  full: undefined,
};

/** Selects the mode that enforces the permissions. Returns `undefined` if the agent has no such mode. */
export function selectMode(
  { permissions: { preset } }: SessionRequest,
  sessionId: string,
  opened: Json,
): Signal | undefined {
  const modeId = enforcingModes[preset];
  const modes = listAt(opened, 'modes', 'availableModes').map(mode => textAt(mode, 'id'));
  if (modeId === undefined || !modes.includes(modeId)) return undefined;
  return call(ids.mode, 'session/set_mode', { sessionId, modeId });
}

/** Settings of agents that act without asking by default. Other agents ignore them. */
export function enforcingEnvironment({
  permissions,
  isStrict,
}: SessionRequest): Readonly<Record<string, string>> {
  const asks = permissions.preset !== 'full' || permissions.deny.length > 0;
  return {
    // A turn of claude-agent-acp ends before its background commands do.
    CLAUDE_CODE_DISABLE_BACKGROUND_TASKS: '1',
    ...(asks ? { OPENCODE_PERMISSION: '{"bash":"ask","edit":"ask","webfetch":"ask"}' } : {}),
    ...(isStrict ? { OPENCODE_DISABLE_PROJECT_CONFIG: '1' } : {}),
  };
}
