import { actionOf, type Json, parseRule, type ToolRule } from '../../core/index.ts';
import type { Preset } from '../agent.ts';
import { event, type Signal, textAt } from '../driver/protocol.ts';
import type { HostAnswer, HostQuestion, SessionRequest } from '../session.ts';
import { commandOf, covers, fitsPath, pathInside, pathsOf, realPathOf } from './rules.ts';
import { simpleCommands } from './shell-commands.ts';

/** What an agent may do, as data. */
export interface PermissionPolicy {
  /** The name of the agent, for messages. */
  readonly agent: string;
  readonly preset: Preset;
  readonly allow: readonly string[];
  readonly deny: readonly string[];
  /** Commands of the step that the agent may run as well: they are run on its work anyway. */
  readonly checks?: readonly string[] | undefined;
  /** What becomes of a wish that nothing allows and no rule denies. */
  readonly otherwise?: 'deny' | 'ask' | undefined;
}

/** A wish to use a tool. Paths are absolute and resolved, symbolic links included: so is the workspace. */
export interface PermissionRequest {
  readonly tool: string;
  readonly input: Json;
  readonly paths: readonly string[];
  readonly workspace: string;
}

export type PermissionDecision =
  | { readonly kind: 'allow' }
  | {
      readonly kind: 'deny';
      readonly message: string;
      /** What to write into the definition of the agent to allow it; absent if a rule denies it. */
      readonly lineToAdd?: string | undefined;
    };

/** Decides by the rules alone, the same for the same request. Denying comes first, then allowing, then the preset. */
export function decide(policy: PermissionPolicy, request: PermissionRequest): PermissionDecision {
  const denying = policy.deny.find(text => someRule([text], rule => covers(rule, request, 'to deny')));
  if (denying !== undefined) {
    const message = `${describe(request)} is denied by \`deny: ["${denying}"]\` of the agent \`${policy.agent}\`.`;
    return { kind: 'deny', message };
  }
  if (
    policy.preset === 'full' ||
    isAllowedByRules(policy, request) ||
    isAllowedByPreset(policy.preset, request)
  )
    return { kind: 'allow' };
  return {
    kind: 'deny',
    message: `${describe(request)} is not allowed by the permissions of the agent \`${policy.agent}\` (${policy.preset}).`,
    lineToAdd: lineToAdd(policy, request),
  };
}

function isAllowedByRules(policy: PermissionPolicy, request: PermissionRequest): boolean {
  const isCovered = (one: PermissionRequest) => someRule(policy.allow, rule => covers(rule, one, 'to allow'));
  if (isCovered(request)) return true;
  if (actionOf(request.tool) !== 'execute') return false;
  const line = commandOf(request.input)?.trim() ?? '';
  const isCheck = (command: string) => policy.checks?.some(check => check.trim() === command) ?? false;
  // A list of commands is allowed if each of them is, be it by different rules.
  const parts = simpleCommands(line) ?? [];
  const isAllowed = (command: string) => isCheck(command) || isCovered({ ...request, input: { command } });
  return isCheck(line) || (parts.length > 0 && parts.every(isAllowed));
}

const someRule = (texts: readonly string[], test: (rule: ToolRule) => boolean): boolean =>
  texts.some(text => {
    const rule = parseRule(text);
    return typeof rule !== 'string' && test(rule);
  });

/** What decides over code that runs later, outside of what was allowed. */
const protectedPaths = ['.git', '.claude/settings.json', '.claude/settings.local.json', '.claude/hooks'];

function isAllowedByPreset(preset: Exclude<Preset, 'full'>, request: PermissionRequest): boolean {
  const inside = request.paths.flatMap(path => pathInside(request.workspace, path) ?? []);
  const isContained = request.paths.length > 0 && inside.length === request.paths.length;
  switch (actionOf(request.tool)) {
    case 'harmless':
      return true;
    case 'read':
      return isContained;
    case 'edit':
      return preset === 'edit' && isContained && !inside.some(isProtected);
    case 'execute':
    case 'fetch':
    case 'other':
      return false;
  }
}

/** At any depth, because a repository may hold others. */
const isProtected = (path: string): boolean =>
  protectedPaths.some(pattern => fitsPath(`**/${pattern}`, path));

/** The whole line, with what is allowed already, so that it can be pasted over the old one. */
function lineToAdd(policy: PermissionPolicy, request: PermissionRequest): string {
  return `allow: ${JSON.stringify([...policy.allow, ruleFor(request)]).replaceAll('","', '", "')}`;
}

function ruleFor({ tool, input, paths, workspace }: PermissionRequest): string {
  switch (actionOf(tool)) {
    case 'execute':
      return `Bash(${commandOf(input) ?? '*'})`;
    case 'read':
    case 'edit': {
      const path = paths.find(each => pathInside(workspace, each) === undefined) ?? paths[0];
      if (path === undefined) return tool;
      const inside = pathInside(workspace, path);
      return `${actionOf(tool) === 'read' ? 'Read' : 'Edit'}(${inside === undefined ? `/${path}` : `/${inside}`})`;
    }
    case 'fetch': {
      const url = textAt(input, 'url') ?? '';
      return URL.canParse(url) ? `WebFetch(domain:${new URL(url).hostname})` : tool;
    }
    case 'harmless':
    case 'other':
      return tool;
  }
}

const longestShown = 200;

/** The wish in a few words, such as `Bash(npm run build)`. */
function describe(request: PermissionRequest): string {
  const whole = ruleFor(request);
  return whole.length > longestShown ? `${whole.slice(0, longestShown)}…` : whole;
}

/** What becomes of a wish: decided here, or for the host to decide. */
export type Ruling =
  | { readonly kind: 'decided'; readonly decision: PermissionDecision }
  | { readonly kind: 'ask'; readonly lineToAdd?: string | undefined };

interface Wish {
  readonly id: string;
  readonly tool: string;
  readonly input: Json;
}

/** Says what was decided, or hands the wish on to the host. */
export function permissionSignals(wish: Wish, ruling: Ruling): readonly Signal[] {
  const said = { type: 'permission', ...wish } as const;
  switch (ruling.kind) {
    case 'decided':
      return [event({ ...said, decision: ruling.decision })];
    case 'ask': {
      const question = { kind: 'permission', ...wish, lineToAdd: ruling.lineToAdd } as const;
      return [event(said), { kind: 'question', question }];
    }
  }
}

/** What the host decided. An answer that fits another question allows nothing. */
export function decisionOf(
  question: Extract<HostQuestion, { kind: 'permission' }>,
  answer: HostAnswer,
): PermissionDecision {
  if (answer.kind === 'allow') return { kind: 'allow' };
  const message = (answer.kind === 'deny' && answer.message) || `${question.tool} was not allowed.`;
  return { kind: 'deny', message, ...(question.lineToAdd ? { lineToAdd: question.lineToAdd } : {}) };
}

/** Applies the policy of a session to what the agent wants to do in its workspace. */
export function applyPolicy({ permissions, cwd }: SessionRequest): (tool: string, input: Json) => Ruling {
  const workspace = realPathOf(cwd, '/');
  return (tool, input) => {
    const paths = pathsOf(tool, input).map(path => realPathOf(path, cwd));
    const decision = decide(permissions, { tool, input, paths, workspace });
    const isOpen = decision.kind === 'deny' && decision.lineToAdd !== undefined;
    return isOpen && permissions.otherwise === 'ask'
      ? { kind: 'ask', lineToAdd: decision.lineToAdd }
      : { kind: 'decided', decision };
  };
}
