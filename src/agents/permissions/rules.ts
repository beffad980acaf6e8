import { lstatSync, readlinkSync, realpathSync } from 'node:fs';
import { basename, dirname, isAbsolute, join, relative, resolve } from 'node:path';
import { actionOf, type Json, type ToolRule } from '../../core/index.ts';
import { listAt, textAt } from '../driver/protocol.ts';
import type { PermissionRequest } from './permissions.ts';
import { possibleCommands, simpleCommands } from './shell-commands.ts';

type RuleUse = 'to allow' | 'to deny';

/** Whether a rule covers a request. To allow, it must cover all of it; to deny, any part is enough. */
export function covers(rule: ToolRule, request: PermissionRequest, use: RuleUse): boolean {
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

function coversTool(rule: ToolRule, tool: string): boolean {
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

/** Whether a text fits a pattern in which `*` stands for anything. Takes time in proportion to both at most. */
function fitsWildcard(pattern: string, text: string): boolean {
  let inPattern = 0;
  let inText = 0;
  let star = -1;
  let retry = 0;
  while (inText < text.length) {
    if (pattern[inPattern] === '*') {
      star = inPattern++;
      retry = inText;
    } else if (pattern[inPattern] === text[inText]) {
      inPattern++;
      inText++;
    } else if (star >= 0) {
      inPattern = star + 1;
      inText = ++retry;
    } else return false;
  }
  while (pattern[inPattern] === '*') inPattern++;
  return inPattern === pattern.length;
}

/**
 * Whether a path fits a pattern as in `.gitignore`: `**` stands for any number of folders, a pattern without a slash
 * fits at any depth, and one that fits a folder fits all that is in it. Both are relative and use `/`.
 */
export function fitsPath(pattern: string, path: string): boolean {
  const wanted = pattern.split('/').filter(part => part !== '' && part !== '.');
  const anywhere = !pattern.replace(/\/$/, '').includes('/');
  return fitsParts(anywhere ? ['**', ...wanted] : wanted, path.split('/'));
}

function fitsParts(pattern: readonly string[], path: readonly string[]): boolean {
  // The row holds, for each number of path parts, whether the pattern parts so far fit exactly these.
  let row = [true, ...path.map(() => false)];
  for (const wanted of pattern) {
    const before = row;
    row = before.map((_, used) =>
      wanted === '**'
        ? before.slice(0, used + 1).some(Boolean)
        : used > 0 && before[used - 1] === true && fitsWildcard(wanted, path[used - 1] ?? ''),
    );
  }
  return row.some(Boolean);
}

const searchTools = new Set(['Glob', 'Grep', 'LS']);

/** The paths that a tool is going to touch, as they were given. An empty list: nobody can tell. */
export function pathsOf(tool: string, input: Json): readonly string[] {
  const named = ['file_path', 'notebook_path', 'path', 'filePath'].flatMap(key => textAt(input, key) ?? []);
  const listed = [
    ...listAt(input, 'paths'),
    ...listAt(input, 'changes'),
    ...listAt(input, 'locations'),
  ].flatMap(item => (typeof item === 'string' ? item : (textAt(item, 'path') ?? [])));
  const found = [...named, ...listed];
  if (!searchTools.has(tool)) return found;
  const pattern = tool === 'Glob' ? textAt(input, 'pattern') : undefined;
  return [...(found.length > 0 ? found : ['.']), ...(pattern ? [fixedPart(pattern)] : [])];
}

/** The folder that a glob cannot leave: everything before its first wildcard. */
const fixedPart = (pattern: string): string => {
  const parts = pattern.split('/');
  const wild = parts.findIndex(part => /[*?[{]/.test(part));
  const fixed = parts.slice(0, wild < 0 ? parts.length : wild).join('/');
  // What follows a wildcard may still climb out again.
  if (parts.includes('..')) return pattern.startsWith('/') ? '/' : '..';
  return fixed || (pattern.startsWith('/') ? '/' : '.');
};

export const commandOf = (input: Json): string | undefined => textAt(input, 'command');

const mostLinks = 40;

/**
 * The path that the system would really touch: symbolic links are followed, also those that lead to nothing yet.
 * What does not exist is resolved as far as it does.
 */
export function realPathOf(path: string, cwd: string): string {
  return follow(resolve(cwd, path), mostLinks);
}

function follow(path: string, links: number): string {
  try {
    return realpathSync(path);
  } catch {
    const parent = dirname(path);
    if (parent === path) return path;
    const here = join(follow(parent, links), basename(path));
    const target = links > 0 ? linkTarget(here) : undefined;
    return target === undefined ? here : follow(target, links - 1);
  }
}

/** Writing through a link that dangles creates the file at its other end. */
function linkTarget(path: string): string | undefined {
  try {
    if (!lstatSync(path).isSymbolicLink()) return undefined;
    const target = readlinkSync(path);
    return isAbsolute(target) ? target : join(dirname(path), target);
  } catch {
    return undefined;
  }
}
