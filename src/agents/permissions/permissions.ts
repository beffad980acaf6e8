import { actionOf, type Json, parseRule, type ToolRule } from '../../core/index.ts';
import type { Preset } from '../agent.ts';
import { event, type Signal, textAt } from '../driver/protocol.ts';
import type { HostAnswer, HostQuestion, SessionRequest } from '../session.ts';
import { commandOf, covers, fitsPath, pathInside, pathsOf, realPathOf } from './rules.ts';
import { simpleCommands } from './shell-commands.ts';

/** Permissions of an agent, as plain data. */
export interface PermissionPolicy {
  /** Name of the agent, for messages. */
  readonly agent: string;
  readonly preset: Preset;
  readonly allow: readonly string[];
  readonly deny: readonly string[];
  /** Check commands of the step. The agent is allowed to run them too, because they run on its work anyway. */
  readonly checks?: readonly string[] | undefined;
  /** Reaction to a request that no rule allows or denies. Defaults to `deny`. */
  readonly otherwise?: 'deny' | 'ask' | undefined;
}

/** Request to use a tool. All paths, including the workspace, are absolute with symbolic links resolved. */
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
      /** Line for the agent definition that would allow the action. Absent if a rule denies it. */
      readonly lineToAdd?: string | undefined;
    };

/** Decides a request by deny rules, then allow rules, then the preset. Deterministic. */
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
  // A list of commands is allowed if every command is, even by different rules.
  const parts = simpleCommands(line) ?? [];
  const isAllowed = (command: string) => isCheck(command) || isCovered({ ...request, input: { command } });
  return isCheck(line) || (parts.length > 0 && parts.every(isAllowed));
}

const someRule = (texts: readonly string[], test: (rule: ToolRule) => boolean): boolean =>
  texts.some(text => {
    const rule = parseRule(text);
    return typeof rule !== 'string' && test(rule);
  });

/** Paths that control code which runs later, outside these permissions. */
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

/** Matches at any depth, because a repository can contain others. */
const isProtected = (path: string): boolean =>
  protectedPaths.some(pattern => fitsPath(`**/${pattern}`, path));

/** Returns the complete `allow` line, including existing rules, so that it can replace the old one. */
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

/** Describes a request as a short rule, such as `Bash(npm run build)`. */
function describe(request: PermissionRequest): string {
  const whole = ruleFor(request);
  return whole.length > longestShown ? `${whole.slice(0, longestShown)}…` : whole;
}

/** Ruling on a tool use: decided by the policy, or left to the host. */
export type Ruling =
  | { readonly kind: 'decided'; readonly decision: PermissionDecision }
  | { readonly kind: 'ask'; readonly lineToAdd?: string | undefined };

interface ToolUse {
  readonly id: string;
  readonly tool: string;
  readonly input: Json;
}

/** Returns the signals that report a decision, or that ask the host for one. */
export function permissionSignals(use: ToolUse, ruling: Ruling): readonly Signal[] {
  const reported = { type: 'permission', ...use } as const;
  switch (ruling.kind) {
    case 'decided':
      return [event({ ...reported, decision: ruling.decision })];
    case 'ask': {
      const question = { kind: 'permission', ...use, lineToAdd: ruling.lineToAdd } as const;
      return [event(reported), { kind: 'question', question }];
    }
  }
}

/** Returns the decision of the host. An answer to another kind of question denies the request. */
export function decisionOf(
  question: Extract<HostQuestion, { kind: 'permission' }>,
  answer: HostAnswer,
): PermissionDecision {
  if (answer.kind === 'allow') return { kind: 'allow' };
  const message = (answer.kind === 'deny' && answer.message) || `${question.tool} was not allowed.`;
  return { kind: 'deny', message, ...(question.lineToAdd ? { lineToAdd: question.lineToAdd } : {}) };
}

/** Applies the policy of a session to the tools that the agent wants to use. */
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
