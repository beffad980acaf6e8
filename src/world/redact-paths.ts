import { realpathSync } from 'node:fs';
import { jsonEscaped } from './secrets-forms.ts';

/** A folder of this machine, and the name that stands on tapes instead: `<PATH:repo>`. */
export interface NamedPath {
  readonly name: string;
  readonly path: string;
}

/** How a path can be written, with the name of each. */
export function pathForms(paths: readonly NamedPath[]): ReadonlyMap<string, string> {
  const forms = new Map<string, string>();
  for (const { name, path } of paths) {
    for (const form of formsOfPath(path)) if (!forms.has(form)) forms.set(form, name);
  }
  return forms;
}

export const withoutSlash = (path: string): string => (path.length > 1 ? path.replace(/[\\/]+$/, '') : path);

function formsOfPath(given: string): readonly string[] {
  const path = withoutSlash(given);
  if (path.length < 2 || !/^(?:\/|[A-Za-z]:[\\/])/.test(path)) return [];
  return [path, realPath(path)].flatMap(twins).flatMap(form => [form, jsonEscaped(form)]);
}

function realPath(path: string): string {
  try {
    return realpathSync(path);
  } catch {
    return path;
  }
}

/** On macOS these are links into `/private`, and either is printed. */
function twins(path: string): readonly string[] {
  if (/^\/(?:tmp|var|etc)(?:\/|$)/.test(path)) return [path, `/private${path}`];
  if (/^\/private\/(?:tmp|var|etc)(?:\/|$)/.test(path)) return [path, path.slice('/private'.length)];
  return [path];
}

const letters = String.raw`\w\u00c0-\u1fff\u2070-\uffff`;

/** `/tmp/a` is not in `/tmp/ab` and not in `/tmp/a.txt`, but it is in `/tmp/a/b` and at the end of a sentence. */
export const endsHere = `(?![${letters}@+~%-]|\\.[${letters}])`;

const goesOnBefore = new RegExp(String.raw`[${letters}.@+~%*)\]}-]$`);
const flagBefore = /(?:^|[^\w-])-[A-Za-z]$/;
const placeholderBefore = /<(?:PATH|SECRET):[\w.-]+>$/;

/** `/tmp/a` is not in `/var/tmp/a` and not in `https://tmp/a`, but it is in `-I/tmp/a` and in `file:///tmp/a`. */
export function beginsAt(text: string, offset: number): boolean {
  const before = text.slice(Math.max(0, offset - 3), offset);
  if (before.endsWith('/')) return before === '://';
  if (before.endsWith('>')) return !placeholderBefore.test(text.slice(Math.max(0, offset - 100), offset));
  return !goesOnBefore.test(before) || flagBefore.test(before);
}
