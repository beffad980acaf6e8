import { relative } from 'node:path';
import { actionOf, type Rule } from '../../core/tools.ts';
import { textAt } from '../json-line.ts';
import { commandOf } from '../tool-use.ts';
import { fitsPath, fitsWildcard } from '../wildcard.ts';
import type { PermissionRequest } from './permissions.ts';
import { possibleCommands, simpleCommands } from './shell-commands.ts';

type RuleUse = 'to allow' | 'to deny';

/** Whether a rule covers a request. To allow, it must cover all of it; to deny, any part is enough. */
export function covers(rule: Rule, request: PermissionRequest, use: RuleUse): boolean {
  if (!coversTool(rule, request.tool)) return false;
  const action = actionOf(request.tool);
  switch (action) {
    case 'read':
    case 'edit':
      return coversPaths(rule.about, request, use);
    case 'execute':
      return rule.about === undefined || coversCommand(rule.about, commandOf(request.input) ?? '', use);
    case 'fetch':
      return rule.about === undefined || coversUrl(rule.about, textAt(request.input, 'url') ?? '');
    case 'harmless':
    case 'other':
      return rule.about === undefined;
  }
}

function coversTool(rule: Rule, tool: string): boolean {
  if (rule.tool === tool || (rule.tool.endsWith('*') && fitsWildcard(rule.tool, tool))) return true;
  if (rule.tool.startsWith('mcp__') && tool.startsWith(`${rule.tool}__`)) return true;
  // As in Claude Code, these two stand for all that read and all that edit.
  return (rule.tool === 'Read' || rule.tool === 'Edit') && actionOf(rule.tool) === actionOf(tool);
}

function coversPaths(
  pattern: string | undefined,
  { paths, workspace }: PermissionRequest,
  use: RuleUse,
): boolean {
  const isCovered = (path: string): boolean => {
    const inside = pathInside(workspace, path);
    if (pattern === undefined) return use === 'to deny' || inside !== undefined;
    if (pattern.startsWith('//')) return fitsPath(pattern, path.replace(/^\/+/, ''));
    return inside !== undefined && fitsPath(pattern, inside);
  };
  if (use === 'to deny') return pattern === undefined || paths.some(isCovered);
  return paths.length > 0 && paths.every(isCovered);
}

/** Relative to the workspace; `undefined` if it is not in it. Both are resolved. */
export function pathInside(workspace: string, path: string): string | undefined {
  if (!path.startsWith('/')) return undefined;
  const inside = relative(workspace, path);
  return inside === '..' || inside.startsWith('../') ? undefined : inside;
}

function coversCommand(pattern: string, command: string, use: RuleUse): boolean {
  if (use === 'to deny') return possibleCommands(command).some(part => fitsCommand(pattern, part));
  if (command.trim() === pattern) return true;
  const [first, ...others] = simpleCommands(command) ?? [];
  return first !== undefined && others.length === 0 && fitsCommand(pattern, first);
}

/** `npm run *` and the older `npm run:*` fit with and without arguments. */
function fitsCommand(pattern: string, command: string): boolean {
  const prefix = /^([\s\S]*)(?::\*| \*)$/.exec(pattern)?.[1];
  if (prefix !== undefined && fitsWildcard(prefix, command)) return true;
  return fitsWildcard(prefix === undefined ? pattern : `${prefix} *`, command);
}

function coversUrl(about: string, url: string): boolean {
  const domain = /^domain:(.+)$/.exec(about)?.[1];
  const host = URL.canParse(url) ? new URL(url).hostname : '';
  return domain === undefined ? fitsWildcard(about, url) : fitsWildcard(domain, host);
}
