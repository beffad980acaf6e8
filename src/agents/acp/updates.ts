import { actionOf, isJsonObject, type Json } from '../../core/index.ts';
import {
  at,
  event,
  listAt,
  numberAt,
  own,
  rawEvent,
  type Signal,
  type Step,
  textAt,
} from '../driver/protocol.ts';
import { addUsage, noUsage, type Usage } from '../session.ts';
import type { AcpState } from './acp.ts';

/** Maximum length of a message. Longer messages are split, so that a flood of chunks does not fill memory. */
const longestMessage = 1_000_000;

/** Handles a `session/update`. */
export function acpUpdate(state: AcpState, update: Json | undefined, line: string): Step<AcpState> {
  const kind = textAt(update, 'sessionUpdate');
  if (!state.isPrompted) return { state, signals: [] };
  switch (kind) {
    case 'agent_message_chunk':
    case 'agent_thought_chunk':
      return takeChunk(state, kind === 'agent_message_chunk' ? 'text' : 'thought', update);
    case 'tool_call':
    case 'tool_call_update':
      return takeTool(state, update);
    case 'usage_update':
      return takeUsageUpdate(state, update);
    case 'session_info_update': {
      const status = textAt(update, '_meta', 'codex', 'threadStatus', 'type');
      return {
        state: { ...state, hasSystemError: state.hasSystemError || status === 'systemError' },
        signals: [],
      };
    }
    case 'user_message_chunk':
    case 'plan':
    case 'available_commands_update':
    case 'current_mode_update':
    case 'config_option_update':
    case 'notice':
    case 'compaction_update':
    case 'compaction_summary_chunk':
      return { state, signals: [] };
    default:
      return { state, signals: [event(rawEvent(line))] };
  }
}

export const isCopilot = (agentName: string): boolean => /copilot/i.test(agentName);

function takeChunk(before: AcpState, type: 'text' | 'thought', update: Json | undefined): Step<AcpState> {
  const piece = textAt(update, 'content', 'text') ?? '';
  // Copilot puts notices of its own among the words of the model.
  const isOfModel = piece !== '' && !(isCopilot(before.agentName) && piece.startsWith('Info: '));
  const state = {
    ...before,
    lastChunk: type === 'text' ? piece : '',
    endsWithDenial: before.endsWithDenial && !isOfModel,
  };
  const id = textAt(update, 'messageId');
  const { state: counted, signals } = takeMessageUsage(state, update);
  const { open } = counted;
  const isSameMessage =
    open?.type === type && open.id === id && open.text.length + piece.length <= longestMessage;
  if (isSameMessage) return { state: { ...counted, open: { ...open, text: open.text + piece } }, signals };
  const flushed = flushText(counted);
  return {
    state: { ...flushed.state, open: { type, text: piece, id } },
    signals: [...flushed.signals, ...signals],
  };
}

/** Reports the message whose chunks were joined so far. */
export function flushText(state: AcpState): Step<AcpState> {
  const { open } = state;
  if (!open) return { state, signals: [] };
  const text = open.type === 'text' ? open.text : state.text;
  return {
    state: { ...state, open: undefined, text },
    signals: [event({ type: open.type, text: open.text })],
  };
}

function takeTool(before: AcpState, update: Json | undefined): Step<AcpState> {
  const { state, signals } = flushText(before);
  const id = textAt(update, 'toolCallId') ?? '';
  const status = textAt(update, 'status');
  const tools = { ...state.tools, [id]: mergeTool(own(state.tools, id), update) };
  const merged = { ...state, lastChunk: '', tools };
  // The input of a pending tool may not have arrived yet.
  if (status === undefined || status === 'pending') return { state: merged, signals };
  const started = startTool(merged, id);
  if (status !== 'completed' && status !== 'failed')
    return { state: started.state, signals: [...signals, ...started.signals] };
  const output = outputOf(update);
  const end: Signal = event({
    type: 'tool-end',
    id,
    ok: status === 'completed',
    ...(output ? { output } : {}),
  });
  const { [id]: _, ...others } = started.state.tools;
  const turnUsage = { ...started.state.turnUsage, isNextRequest: true };
  return {
    state: { ...started.state, tools: others, turnUsage },
    signals: [...signals, ...started.signals, end],
  };
}

/** Returns the tool call that an update completes without a permission request, if it is a known edit. */
export function unaskedEdit(state: AcpState, update: Json | undefined): AcpTool | undefined {
  if (textAt(update, 'status') !== 'completed') return undefined;
  const tool = mergeTool(own(state.tools, textAt(update, 'toolCallId') ?? ''), update);
  const isEdit = actionOf(acpToolUse(tool).tool) === 'edit';
  return isEdit && tool.paths.length > 0 && !tool.isAsked ? tool : undefined;
}

/** Reports the start of a tool once. */
export function startTool(before: AcpState, id: string): Step<AcpState> {
  const { state, signals } = flushText(before);
  const known = own(state.tools, id) ?? noTool;
  if (known.isStarted) return { state, signals };
  const { tool: name, input } = acpToolUse(known);
  const title = known.title === undefined ? {} : { title: known.title };
  return {
    state: { ...state, tools: { ...state.tools, [id]: { ...known, isStarted: true } } },
    signals: [...signals, event({ type: 'tool-start', id, name, input, ...title })],
  };
}

function outputOf(update: Json | undefined): string | undefined {
  const raw = at(update, 'rawOutput');
  if (typeof raw === 'string') return raw;
  const texts = listAt(update, 'content').flatMap(part => textAt(part, 'content', 'text') ?? []);
  const terminal = textAt(update, '_meta', 'terminal_output_delta', 'data');
  return texts.join('\n') || terminal;
}

/** Known fields of a tool call. Agents report them piece by piece, in any order. */
export interface AcpTool {
  readonly name?: string | undefined;
  readonly title?: string | undefined;
  readonly kind?: string | undefined;
  readonly input?: Json | undefined;
  readonly paths: readonly string[];
  readonly isStarted: boolean;
  /** Whether the agent asked for permission. */
  readonly isAsked: boolean;
}

const noTool: AcpTool = { paths: [], isStarted: false, isAsked: false };

/** Adds the fields of a message to a tool call. */
export function mergeTool(known: AcpTool = noTool, call: Json | undefined): AcpTool {
  const input = at(call, 'rawInput');
  const named = [...listAt(call, 'locations'), ...listAt(call, 'content')].flatMap(
    place => textAt(place, 'path') ?? [],
  );
  return {
    name: textAt(call, 'name') ?? textAt(call, '_meta', 'toolName') ?? known.name,
    title: textAt(call, 'title') ?? known.title,
    kind: textAt(call, 'kind') ?? known.kind,
    input: isEmpty(input) ? known.input : input,
    paths: [...new Set([...known.paths, ...named])],
    isStarted: known.isStarted,
    isAsked: known.isAsked,
  };
}

const isEmpty = (input: Json | undefined): boolean =>
  input === undefined || input === null || (isJsonObject(input) && Object.keys(input).length === 0);

const names: Readonly<Record<string, string>> = {
  read: 'Read',
  edit: 'Edit',
  delete: 'Edit',
  move: 'Edit',
  search: 'Grep',
  execute: 'Bash',
  fetch: 'WebFetch',
  think: 'Think',
};

/** Returns the call as a tool of the common vocabulary. The kind of a call takes precedence over its name. */
function acpToolUse(tool: AcpTool = noTool): { readonly tool: string; readonly input: Json } {
  const name = toolName(tool);
  return { tool: name ?? tool.title ?? 'tool', input: toolInput(tool, name ?? '') };
}

function toolName({ name, kind = '' }: AcpTool): string | undefined {
  const byKind = Object.hasOwn(names, kind) ? names[kind] : undefined;
  const isKnown = name !== undefined && actionOf(name) !== 'other';
  const agrees = isKnown && (byKind === undefined || actionOf(name) === actionOf(byKind));
  return agrees ? name : (byKind ?? name);
}

/**
 * Returns a call that asks for permission as a tool that a rule can name. A call that has only a title, and that names
 * paths, counts as an edit of them, because it may be one.
 */
export function acpToolAsked(tool: AcpTool = noTool): { readonly tool: string; readonly input: Json } {
  if (toolName(tool) === undefined && tool.paths.length > 0)
    return { tool: 'Edit', input: toolInput(tool, 'Edit') };
  const use = acpToolUse(tool);
  return { ...use, tool: nameForRules(use.tool) };
}

/** Rules name tools with letters, digits, `_` and `-`. */
const nameForRules = (name: string): string =>
  name.replace(/[^\w-]+/g, '_').replace(/^[^A-Za-z]+|_+$/g, '') || 'tool';

function toolInput({ input, title, paths }: AcpTool, name: string): Json {
  const fields = isJsonObject(input) ? input : {};
  switch (actionOf(name)) {
    case 'execute': {
      const words = listAt(fields, 'command');
      const command = textAt(fields, 'command') ?? (words.length > 0 ? words.join(' ') : (title ?? ''));
      return { ...fields, command };
    }
    case 'read':
    case 'edit':
      return paths.length > 0 ? { ...fields, paths } : fields;
    case 'fetch':
    case 'harmless':
    case 'other':
      return input ?? fields;
  }
}

/** Usage that was reported while the turn is under way. */
export interface TurnUsage {
  readonly counted: Usage;
  /** Size of the context in the current request to the model. */
  readonly contextTokens: number;
  /** Whether a tool ended, so that the next size of the context belongs to another request. */
  readonly isNextRequest: boolean;
}

export const noTurnUsage: TurnUsage = { counted: noUsage, contextTokens: 0, isNextRequest: true };

/**
 * Handles a `usage_update`, which has the size of the context and often the total cost. Every request to the model sends
 * the whole context, so the sum of its sizes approximates the tokens until the turn reports them.
 */
function takeUsageUpdate(state: AcpState, update: Json | undefined): Step<AcpState> {
  const { counted, contextTokens } = state.turnUsage;
  const used = numberAt(update, 'used') ?? 0;
  // Some agents repeat the last size, for example with the total cost, before another request.
  const isNextRequest = state.turnUsage.isNextRequest && used !== contextTokens;
  const before = isNextRequest ? 0 : contextTokens;
  const isDollars = textAt(update, 'cost', 'currency') === 'USD';
  const total = isDollars ? numberAt(update, 'cost', 'amount') : undefined;
  const usage = {
    ...noUsage,
    inputTokens: Math.max(0, used - before),
    costUsd: total === undefined ? null : costSince(state.costUsd, total),
  };
  const turnUsage = {
    counted: addUsage(counted, usage),
    contextTokens: Math.max(before, used),
    isNextRequest: state.turnUsage.isNextRequest && !isNextRequest,
  };
  return { state: { ...state, turnUsage, costUsd: total ?? state.costUsd }, signals: usageSignals(usage) };
}

/** Counts the usage that Qwen Code puts beside a message. */
function takeMessageUsage(state: AcpState, update: Json | undefined): Step<AcpState> {
  const usage = tokensIn(at(update, '_meta', 'usage'));
  if (!usage) return { state, signals: [] };
  const counted = addUsage(state.turnUsage.counted, usage);
  return { state: { ...state, turnUsage: { ...state.turnUsage, counted } }, signals: usageSignals(usage) };
}

/** Corrects what was counted during the turn by the usage in its response. Some agents report none. */
export function takeTurnUsage(state: AcpState, result: Json): Step<AcpState> {
  const { counted } = state.turnUsage;
  const total = tokensIn(at(result, 'usage')) ?? quotaIn(result);
  const signals = total
    ? usageSignals({
        inputTokens: total.inputTokens - counted.inputTokens,
        outputTokens: total.outputTokens - counted.outputTokens,
        cachedTokens: total.cachedTokens - counted.cachedTokens,
        costUsd: null,
      })
    : [];
  return { state: { ...state, turnUsage: noTurnUsage }, signals };
}

/** Returns the cost since the last report. An agent that was killed restarts its total from zero. */
const costSince = (reportedCost: number, now: number): number =>
  now < reportedCost ? now : now - reportedCost;

const usageSignals = (usage: Usage): readonly Signal[] =>
  usage.inputTokens === 0 && usage.outputTokens === 0 && usage.costUsd === null
    ? []
    : [event({ type: 'usage', ...usage })];

function tokensIn(usage: Json | undefined): Usage | undefined {
  const outputTokens = numberAt(usage, 'outputTokens');
  const given = numberAt(usage, 'inputTokens');
  if (outputTokens === undefined || given === undefined) return undefined;
  // Agents differ in whether the input includes cached tokens; the total does.
  const total = numberAt(usage, 'totalTokens');
  return {
    inputTokens: total === undefined ? given : Math.max(given, total - outputTokens),
    outputTokens,
    cachedTokens: numberAt(usage, 'cachedReadTokens') ?? 0,
    costUsd: null,
  };
}

/** Returns the usage from the place where Gemini puts it. */
function quotaIn(result: Json): Usage | undefined {
  const quota = at(result, '_meta', 'quota', 'token_count');
  const outputTokens = numberAt(quota, 'output_tokens');
  const inputTokens = numberAt(quota, 'input_tokens');
  if (outputTokens === undefined || inputTokens === undefined) return undefined;
  return { inputTokens, outputTokens, cachedTokens: 0, costUsd: null };
}
