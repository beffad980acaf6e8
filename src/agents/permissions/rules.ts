import { lstatSync, readlinkSync, realpathSync } from 'node:fs';
import { basename, dirname, isAbsolute, join, relative, resolve } from 'node:path';
import { actionOf, fitsPath, fitsWildcard, type Json, type ToolRule } from '../../core/index.ts';
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
  const globs = [...(tool === 'Glob' ? ['pattern'] : []), 'glob', 'include'].flatMap(
    key => textAt(input, key) ?? listAt(input, key).flatMap(item => (typeof item === 'string' ? item : [])),
  );
  return [...(found.length > 0 ? found : ['.']), ...globs.flatMap(searchedFolders)];
}

const mostAlternatives = 256;

/** Returns folders that contain all matches of a glob. A glob that can leave the workspace gives the root. */
function searchedFolders(glob: string): readonly string[] {
  const alternatives = expandBraces(glob.replace(/^!/, ''));
  return alternatives?.map(fixedPart) ?? ['/'];
}

/** Returns everything before the first wildcard of a glob, or the root if a later part can match `..`. */
function fixedPart(glob: string): string {
  const parts = glob.split('/');
  if (glob.startsWith('~') || parts.some((part, at) => canBeParent(part, at === parts.length - 1)))
    return '/';
  const wild = parts.findIndex(part => /[*?[{(\\]/.test(part));
  const fixed = parts.slice(0, wild < 0 ? parts.length : wild).join('/');
  return fixed || (glob.startsWith('/') ? '/' : '.');
}

/** Whether a part of a glob can match `..`, as `[.][.]`, `.?` and `@(..)` do in a shell. */
function canBeParent(part: string, isLast: boolean): boolean {
  if (/[?*+@!]\(/.test(part)) return /[.[]/.test(part);
  const plain = part.replace(/\\(.)/g, '$1').replace(/\[[^\]]*\]?/g, '.');
  return plain === '..' || (!isLast && /^\.[.?*]+$/.test(plain));
}

/** Expands `{a,b}` in a glob. Returns `undefined` for ranges, which can contain any character, and for too many results. */
function expandBraces(glob: string): readonly string[] | undefined {
  let done: readonly string[] = [glob];
  for (;;) {
    const next: string[] = [];
    for (const text of done) {
      const [whole, inside = ''] = /\{([^{}]*)\}/.exec(text) ?? [];
      if (whole === undefined) next.push(text);
      else if (!inside.includes(',') && inside.includes('..')) return undefined;
      else next.push(...inside.split(',').map(choice => text.replace(whole, () => choice)));
    }
    if (next.length > mostAlternatives) return undefined;
    if (next.length === done.length && next.every((text, at) => text === done[at])) return next;
    done = next;
  }
}

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
