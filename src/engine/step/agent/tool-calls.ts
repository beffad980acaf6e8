import { realpathSync } from 'node:fs';
import { join, resolve, sep } from 'node:path';
import type { AgentEvent } from '../../../agents/index.ts';

const readingTools = /^(?:Read|Grep|Glob|LS|WebFetch|WebSearch|TodoWrite|NotebookRead)$/i;
const mostCalls = 10_000;
const longestText = 20_000;

/** What the tools of a session were called with. */
export class ToolCalls {
  readonly #folder: string;
  /** Paths, commands and titles. File contents are left out: they may name anything. */
  readonly #texts: string[] = [];
  readonly #names = new Set<string>();

  constructor(folder: string) {
    this.#folder = folder;
  }

  add(event: AgentEvent): void {
    if (event.type !== 'tool-start' || readingTools.test(event.name) || this.#texts.length >= mostCalls)
      return;
    this.#names.add(event.name);
    for (const text of [event.title ?? '', ...textsIn(event.input)])
      if (text !== '') this.#texts.push(text.slice(0, longestText));
  }

  mentions(text: string): boolean {
    return this.#texts.some(given => given.toLowerCase().includes(text.toLowerCase()));
  }

  changesRef(name: string): boolean {
    const word = new RegExp(`(?<![\\w./-])(?:refs/(?:heads|tags)/)?${escapeText(name)}(?![\\w./-])`);
    return this.#texts.some(
      text =>
        /\bgit\b.*\b(?:branch|tag|update-ref|reset|push|commit|merge|rebase|checkout|switch)\b/s.test(text) &&
        word.test(text),
    );
  }

  /** Whether a call names a file of the main checkout: by its path, or relative to a folder that the call names. */
  namesFile(root: string, path: string): boolean {
    return this.#texts.some(text => {
      const words = wordsOf(text);
      const places = [
        this.#folder,
        ...words.map(word => resolve(this.#folder, word)).filter(this.#isOutside(root)),
      ];
      const target = join(root, path);
      return words.some(
        word =>
          places.some(place => this.#isNamed(root, resolve(place, word), target)) ||
          (/git-common-dir|worktree list|\.\.\//.test(text) && resolve('/', word) === resolve('/', path)),
      );
    });
  }

  /** Whether the path is inside the main checkout, but not in the workspace. */
  #isOutside(root: string): (path: string) => boolean {
    return path => isBelow(root, realPath(path)) && !isBelow(this.#folder, path);
  }

  /** Whether a path is the file, or contains it and not the workspace. Git shows an untracked folder instead of its files. */
  #isNamed(root: string, path: string, target: string): boolean {
    const named = path.replace(/\/$/, '');
    if (isBelow(target.replace(/\/$/, ''), named)) return target.endsWith('/') || named === target;
    return named !== root && isBelow(named, target) && isBelow(root, named) && !isBelow(named, this.#folder);
  }

  namesWorktree(path: string): boolean {
    if (this.#names.has('EnterWorktree') && path.includes('/.claude/worktrees/')) return true;
    return this.#texts.some(
      text =>
        /\bworktree\b/.test(text) &&
        wordsOf(text).some(word => realPath(resolve(this.#folder, word)) === realPath(path)),
    );
  }
}

const isBelow = (folder: string, path: string): boolean =>
  path === folder || path.startsWith(`${folder}${sep}`);

const realPath = (path: string): string => {
  try {
    return realpathSync(path);
  } catch {
    return path;
  }
};

const wordsOf = (text: string): readonly string[] => text.split(/[\s'"`;&|<>()=]+/).filter(Boolean);

const escapeText = (text: string): string => text.replace(/[\\^$.*+?()[\]{}|/-]/g, '\\$&');

const telling = /path|file|command|cmd|script|title|arg|dir|cwd|name/i;

function textsIn(input: unknown, key = 'command'): readonly string[] {
  if (typeof input === 'string') return telling.test(key) && !/content/i.test(key) ? [input] : [];
  if (Array.isArray(input)) return input.flatMap(item => textsIn(item, key));
  if (typeof input !== 'object' || input === null) return [];
  return Object.entries(input).flatMap(([name, value]) => textsIn(value, name));
}
