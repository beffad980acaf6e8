import type { Json } from '../core/json.ts';
import { listAt, textAt } from './json-line.ts';

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
