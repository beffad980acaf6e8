import { spawnSync } from 'node:child_process';
import { basename, dirname } from 'node:path';
import {
  actionOf,
  hooksPattern,
  isProtected,
  type Json,
  parseRule,
  type ToolRule,
} from '../../core/index.ts';
import type { Preset } from '../agent.ts';
import { event, type Signal, textAt } from '../driver/protocol.ts';
import type { HostAnswer, HostQuestion, SessionHost, SessionRequest } from '../session.ts';
import { allowLine, denyLine } from './command-rules.ts';
import { type EveryCommand, everyCommand } from './every-command.ts';
import { commandOf, covers, coversTool, pathInside, pathsOf, realPathOf } from './rules.ts';

/** Permissions of an agent, as plain data. */
export interface PermissionPolicy {
  /** Name of the agent, for messages. */
  readonly agent: string;
  readonly preset: Preset;
  readonly allow: readonly string[];
  readonly deny: readonly string[];
  /** Check commands of the step. The agent is allowed to run them too, because they run on its work anyway. */
  readonly checks?: readonly string[] | undefined;
  /** Whether the definition of the agent or of the step sets permissions, so that they must be enforced. */
  readonly isWritten?: boolean | undefined;
  /** Patterns of protected files beside those that always are. `!` removes a pattern. */
  readonly protect?: readonly string[] | undefined;
  /** Reaction to a request that no rule allows or denies. Defaults to `deny`. */
  readonly otherwise?: 'deny' | 'ask' | undefined;
}

/** Request to use a tool. All paths, including the workspace, are absolute with symbolic links resolved. */
export interface PermissionRequest {
  readonly tool: string;
  readonly input: Json;
  readonly paths: readonly string[];
  readonly workspace: string;
  /** Returns the path that a command in the workspace would access, with symbolic links resolved. */
  readonly resolve: (path: string) => string;
}

export type PermissionDecision =
  | { readonly kind: 'allow' }
  | {
      readonly kind: 'deny';
      readonly message: string;
      /** Line for the agent definition that would allow the action. Absent if a rule denies it, or if no rule can name it. */
      readonly lineToAdd?: string | undefined;
    };

/** Decides a request by deny rules, then allow rules, then the preset. Deterministic. */
export function decide(policy: PermissionPolicy, request: PermissionRequest): PermissionDecision {
  const denial = denialByRules(policy, request);
  if (denial !== undefined) return { kind: 'deny', message: denial };
  if (policy.preset === 'full' || isAllowedByPreset(policy.preset, request)) return { kind: 'allow' };
  const ruling = allowByRules(policy, request);
  if (ruling.kind === 'allowed') return { kind: 'allow' };
  const message = `${describe(request)} is not allowed by the permissions of the agent \`${policy.agent}\` (${policy.preset})`;
  const line = lineToAdd(policy, request);
  return {
    kind: 'deny',
    message: ruling.why === undefined ? `${message}.` : `${message}: ${ruling.why}.`,
    ...(line === undefined ? {} : { lineToAdd: line }),
  };
}

/** Returns a message if a rule denies a request, or if it cannot be told whether one does. */
function denialByRules(policy: PermissionPolicy, request: PermissionRequest): string | undefined {
  const kept = policy.preset === 'full' ? undefined : protectedFile(policy, request);
  if (kept !== undefined)
    return `${describe(request)} is denied, because ${kept} is protected: it decides which code runs later. A person can change it, or remove it from the list with \`protect: ["!${kept}"]\` in reprise.yaml.`;
  let everything: EveryCommand | undefined;
  for (const text of policy.deny) {
    const rule = parseRule(text);
    if (typeof rule === 'string') continue;
    const denied = `\`deny: ["${text}"]\` of the agent \`${policy.agent}\``;
    if (covers(rule, request, 'to deny')) return `${describe(request)} is denied by ${denied}.`;
    if (actionOf(request.tool) !== 'execute' || rule.about === undefined || !coversTool(rule, request.tool))
      continue;
    everything ??= everyCommand(commandOf(request.input) ?? '');
    const denial = denyLine(rule.about, everything);
    if (denial?.kind === 'match') return `${describe(request)} is denied by ${denied}.`;
    if (denial?.kind === 'doubt')
      return `${describe(request)} is refused, because it may run what ${denied} denies: ${denial.why}.`;
  }
  return undefined;
}

/** Returns the protected file that a request edits, relative to the workspace. */
function protectedFile({ protect }: PermissionPolicy, request: PermissionRequest): string | undefined {
  if (actionOf(request.tool) !== 'edit') return undefined;
  return request.paths
    .flatMap(path => pathInside(request.workspace, path) ?? [])
    .find(path => isProtected(path, protect));
}

type AllowRuling =
  | { readonly kind: 'allowed' }
  | { readonly kind: 'open'; readonly why?: string | undefined };

function allowByRules(policy: PermissionPolicy, request: PermissionRequest): AllowRuling {
  if (someRule(policy.allow, rule => covers(rule, request, 'to allow'))) return { kind: 'allowed' };
  const line = commandOf(request.input);
  if (actionOf(request.tool) !== 'execute' || line === undefined) return { kind: 'open' };
  const patterns = policy.allow.flatMap(text => {
    const rule = parseRule(text);
    return typeof rule !== 'string' && coversTool(rule, request.tool) ? (rule.about ?? []) : [];
  });
  const { workspace, resolve } = request;
  const mayRead = (path: string) =>
    decide(policy, { ...request, tool: 'Read', input: { file_path: path }, paths: [path] }).kind === 'allow';
  return allowLine(line, { patterns, checks: policy.checks ?? [], workspace, resolve, mayRead });
}

const someRule = (texts: readonly string[], test: (rule: ToolRule) => boolean): boolean =>
  texts.some(text => {
    const rule = parseRule(text);
    return typeof rule !== 'string' && test(rule);
  });

function isAllowedByPreset(preset: Exclude<Preset, 'full'>, request: PermissionRequest): boolean {
  const inside = request.paths.flatMap(path => pathInside(request.workspace, path) ?? []);
  const isContained = request.paths.length > 0 && inside.length === request.paths.length;
  switch (actionOf(request.tool)) {
    case 'harmless':
      return true;
    case 'read':
      return isContained;
    case 'edit':
      return preset === 'edit' && isContained;
    case 'execute':
    case 'fetch':
    case 'other':
      return false;
  }
}

/** Returns the complete `allow` line, including existing rules, so that it can replace the old one. */
function lineToAdd(policy: PermissionPolicy, request: PermissionRequest): string | undefined {
  const rule = ruleFor(request);
  if (typeof parseRule(rule) === 'string') return undefined;
  return `allow: ${JSON.stringify([...policy.allow, rule]).replaceAll('","', '", "')}`;
}

function ruleFor({ tool, input, paths, workspace }: PermissionRequest): string {
  switch (actionOf(tool)) {
    case 'execute':
      return `${tool}(${commandOf(input)?.trim() || '*'})`;
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
export function applyPolicy(
  { permissions: given, cwd }: SessionRequest,
  { inheritEnv }: Pick<SessionHost, 'inheritEnv'>,
): (tool: string, input: Json) => Ruling {
  const workspace = realPathOf(cwd, '/');
  let withHooks: PermissionPolicy | undefined;
  return (tool, input) => {
    const isEdit = actionOf(tool) === 'edit' && given.preset !== 'full';
    if (isEdit)
      withHooks ??= { ...given, protect: [...hooksOf(workspace, inheritEnv), ...(given.protect ?? [])] };
    const permissions = withHooks ?? given;
    const paths = pathsOf(tool, input).map(path => realPathOf(path, cwd));
    const request = { tool, input, paths, workspace, resolve: (path: string) => realPathOf(path, cwd) };
    const decision = decide(permissions, request);
    const isOpen = decision.kind === 'deny' && denialByRules(permissions, request) === undefined;
    return isOpen && permissions.otherwise === 'ask'
      ? { kind: 'ask', ...(decision.lineToAdd ? { lineToAdd: decision.lineToAdd } : {}) }
      : { kind: 'decided', decision };
  };
}

/** Returns the pattern of the folder with git hooks, if the repository of the workspace sets one. */
function hooksOf(workspace: string, env: SessionHost['inheritEnv']): readonly string[] {
  const ask = (...args: readonly string[]): readonly string[] => {
    const { status, stdout } = spawnSync('git', args, {
      cwd: workspace,
      env,
      stdio: ['ignore', 'pipe', 'ignore'],
      encoding: 'utf8',
    });
    return status === 0 ? stdout.split('\n').filter(line => line !== '') : [];
  };
  const [hooksPath] = ask('config', '--type=path', '--get', 'core.hooksPath');
  if (hooksPath === undefined) return [];
  const [top, common] = ask('rev-parse', '--path-format=absolute', '--show-toplevel', '--git-common-dir');
  const main = common !== undefined && basename(common) === '.git' ? [dirname(common)] : [];
  const pattern = hooksPattern(hooksPath, [...(top === undefined ? [] : [top]), ...main]);
  return pattern === undefined ? [] : [pattern];
}
