import { lstatSync, readlinkSync, realpathSync } from 'node:fs';
import { basename, dirname, isAbsolute, join, relative, resolve } from 'node:path';
import { actionOf, type Json, type ToolRule } from '../../core/index.ts';
import { listAt, textAt } from '../driver/protocol.ts';
import type { PermissionRequest } from './permissions.ts';

type RuleUse = 'to allow' | 'to deny';

/**
 * Whether a rule covers a request. To allow, it must cover the whole request; to deny, any part is enough. Of commands,
 * it covers only all: `command-rules.ts` judges shell text.
 */
export function covers(rule: ToolRule, request: PermissionRequest, use: RuleUse): boolean {
  if (!coversTool(rule, request.tool)) return false;
  const action = actionOf(request.tool);
  switch (action) {
    case 'read':
    case 'edit':
      return coversPaths(rule.about, request, use);
    case 'fetch':
      return rule.about === undefined || coversUrl(rule.about, textAt(request.input, 'url') ?? '');
    case 'execute':
    case 'harmless':
    case 'other':
      return rule.about === undefined;
  }
}

export function coversTool(rule: ToolRule, tool: string): boolean {
  if (rule.tool === tool || (rule.tool.endsWith('*') && fitsWildcard(rule.tool, tool))) return true;
  if (rule.tool.startsWith('mcp__') && tool.startsWith(`${rule.tool}__`)) return true;
  // As in Claude Code, these two names stand for all tools that read or edit.
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

/** Returns a resolved path relative to the resolved workspace, or `undefined` if it is outside. */
export function pathInside(workspace: string, path: string): string | undefined {
  if (!path.startsWith('/')) return undefined;
  const inside = relative(workspace, path);
  return inside === '..' || inside.startsWith('../') ? undefined : inside;
}

function coversUrl(about: string, url: string): boolean {
  const domain = /^domain:(.+)$/.exec(about)?.[1];
  const host = URL.canParse(url) ? new URL(url).hostname : '';
  return domain === undefined ? fitsWildcard(about, url) : fitsWildcard(domain, host);
}

/** Whether a text matches a pattern with `*` wildcards. Takes at most time proportional to the product of both lengths. */
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
 * Whether a path matches a pattern as in `.gitignore`: `**` matches any number of folders, a pattern without a slash
 * matches at any depth, and a pattern that matches a folder matches its contents. Both are relative and use `/`.
 */
export function fitsPath(pattern: string, path: string): boolean {
  const wanted = pattern.split('/').filter(part => part !== '' && part !== '.');
  const anywhere = !pattern.replace(/\/$/, '').includes('/');
  return fitsParts(anywhere ? ['**', ...wanted] : wanted, path.split('/'));
}

function fitsParts(pattern: readonly string[], path: readonly string[]): boolean {
  // `row[n]` tells whether the pattern parts so far match exactly the first n path parts.
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

/** Returns the paths in the input of a tool, unresolved. An empty list means that the paths are unknown. */
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

/** Returns the folder that contains all matches of a glob: everything before its first wildcard. */
const fixedPart = (pattern: string): string => {
  const parts = pattern.split('/');
  const wild = parts.findIndex(part => /[*?[{]/.test(part));
  const fixed = parts.slice(0, wild < 0 ? parts.length : wild).join('/');
  // A `..` after a wildcard can still leave the folder.
  if (parts.includes('..')) return pattern.startsWith('/') ? '/' : '..';
  return fixed || (pattern.startsWith('/') ? '/' : '.');
};

export const commandOf = (input: Json): string | undefined => textAt(input, 'command');

const mostLinks = 40;

/**
 * Returns the path that the system would access. Follows symbolic links, including dangling ones. If the path does not
 * exist, resolves the part that does.
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

/** Returns the target of a dangling link, because writing through the link creates the target. */
function linkTarget(path: string): string | undefined {
  try {
    if (!lstatSync(path).isSymbolicLink()) return undefined;
    const target = readlinkSync(path);
    return isAbsolute(target) ? target : join(dirname(path), target);
  } catch {
    return undefined;
  }
}
