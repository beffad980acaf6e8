import { type Json, RepriseError } from '../../core/index.ts';
import { at, listAt, numberAt, rawEvent, textAt } from '../driver/protocol.ts';
import { insideShell } from '../permissions/shell-commands.ts';
import type { AgentEvent, SessionRequest } from '../session.ts';

interface Item {
  readonly item: Json | undefined;
  readonly isOver: boolean;
  /** Ids of running tools. */
  readonly open: readonly string[];
  readonly line: string;
}

/** Turns an item into events. Understands the names of both `codex exec` and `codex app-server`. */
export function itemEvents({ item, isOver, open, line }: Item): {
  readonly events: readonly AgentEvent[];
  readonly open: readonly string[];
} {
  const emit = (...events: readonly AgentEvent[]) => ({ events, open });
  switch (textAt(item, 'type')) {
    case 'agent_message':
    case 'agentMessage':
      return isOver ? emit({ type: 'text', text: textAt(item, 'text') ?? '' }) : emit();
    case 'reasoning': {
      const summary = listAt(item, 'summary').filter(part => typeof part === 'string');
      const text = textAt(item, 'text') ?? summary.join('\n');
      return isOver && text !== '' ? emit({ type: 'thought', text }) : emit();
    }
    case 'userMessage':
    case 'todo_list':
    case 'plan':
      return emit();
    default: {
      const tool = codexTool(item);
      return tool ? toolEvents(tool, { item, isOver, open }) : emit(...(isOver ? [rawEvent(line)] : []));
    }
  }
}

/** Returns an item as a tool of the common vocabulary, or `undefined` if it is not a tool. */
export function codexTool(item: Json | undefined): { name: string; input: Json } | undefined {
  switch (textAt(item, 'type')) {
    case 'command_execution':
    case 'commandExecution':
      return { name: 'Bash', input: { command: commandText(item) } };
    case 'file_change':
    case 'fileChange':
      return { name: 'Edit', input: { changes: listAt(item, 'changes').flatMap(changesOf) } };
    case 'mcp_tool_call':
    case 'mcpToolCall':
      return {
        name: `mcp__${textAt(item, 'server') ?? ''}__${textAt(item, 'tool') ?? ''}`,
        input: at(item, 'arguments') ?? {},
      };
    case 'web_search':
    case 'webSearch':
      return { name: 'WebSearch', input: { query: textAt(item, 'query') ?? '' } };
    default:
      return undefined;
  }
}

/** Returns a command without the shell that codex wraps around it. */
export const commandText = (item: Json | undefined): string =>
  insideShell(textAt(item, 'command') ?? listAt(item, 'command').join(' '));

/** Returns the changed paths. A moved file counts as a change of both paths. */
function changesOf(change: Json): readonly Json[] {
  const moved = textAt(change, 'kind', 'move_path') ?? textAt(change, 'kind', 'movePath');
  const kind = textAt(change, 'kind') ?? textAt(change, 'kind', 'type') ?? 'update';
  return [textAt(change, 'path') ?? '', ...(moved ? [moved] : [])].map(path => ({ path, kind }));
}

function toolEvents(
  { name, input }: { readonly name: string; readonly input: Json },
  { item, isOver, open }: Omit<Item, 'line'>,
): { readonly events: readonly AgentEvent[]; readonly open: readonly string[] } {
  const id = textAt(item, 'id') ?? '';
  const start: readonly AgentEvent[] = open.includes(id) ? [] : [{ type: 'tool-start', id, name, input }];
  if (!isOver) return { events: start, open: start.length > 0 ? [...open, id] : open };
  const output = textAt(item, 'aggregated_output') ?? textAt(item, 'aggregatedOutput');
  const end: AgentEvent = { type: 'tool-end', id, ok: isOk(item), ...(output ? { output } : {}) };
  return { events: [...start, end], open: open.filter(other => other !== id) };
}

function isOk(item: Json | undefined): boolean {
  const exitCode = numberAt(item, 'exit_code') ?? numberAt(item, 'exitCode') ?? 0;
  return exitCode === 0 && !['failed', 'declined'].includes(textAt(item, 'status') ?? '');
}

const sandboxes = { 'read-only': 'read-only', edit: 'workspace-write', full: 'danger-full-access' } as const;

/** Returns the sandbox that enforces the preset. */
export const sandboxOf = ({ permissions }: SessionRequest) => sandboxes[permissions.preset];

/** Whether the session needs the app server, because `codex exec` never asks and would ignore rules. */
export const asksForApproval = ({ permissions: { allow, deny, otherwise } }: SessionRequest): boolean =>
  allow.length > 0 || deny.length > 0 || otherwise === 'ask';

/**
 * With `untrusted`, codex asks about every command that is not known to be harmless, so that a rule can deny it. With
 * `on-request`, everything runs in the sandbox and codex asks only to leave it, which is enough for `allow` rules.
 */
export const approvalPolicyOf = ({ permissions: { deny, otherwise } }: SessionRequest) =>
  deny.length > 0 || otherwise === 'ask' ? 'untrusted' : 'on-request';

/** Throws if the request forks a session. */
export function refuseFork({ resume }: SessionRequest): void {
  if (!resume?.fork) return;
  throw new RepriseError('AGENT_FAILED', 'codex cannot fork a session', {
    hint: 'resume the session itself, or start a new one',
  });
}
