import { parseDuration } from '../../core/time.ts';
import type { CaseManifest, CaseStep, Texts } from './manifest.ts';
import {
  anyText,
  byKind,
  describe,
  kindOf,
  listOf,
  mapOf,
  mapped,
  positive,
  type Reader,
  type Site,
  text,
  textOf,
} from './reader.ts';

/** Splits a text as a shell would, but expands nothing. `undefined` if a quote does not close. */
export function splitArguments(text: string): readonly string[] | undefined {
  const words: string[] = [];
  let word: string | undefined;
  for (let at = 0; at < text.length; at++) {
    const char = text.charAt(at);
    if (/\s/.test(char)) {
      if (word !== undefined) words.push(word);
      word = undefined;
    } else if (char === "'") {
      const end = text.indexOf("'", at + 1);
      if (end < 0) return undefined;
      word = (word ?? '') + text.slice(at + 1, end);
      at = end;
    } else if (char === '"') {
      const quoted = /"((?:[^"\\]|\\[\s\S])*)"/y;
      quoted.lastIndex = at;
      const [whole, inner] = quoted.exec(text) ?? [];
      if (whole === undefined || inner === undefined) return undefined;
      word = (word ?? '') + unescaped(inner);
      at += whole.length - 1;
    } else if (char === '\\') {
      if (at + 1 === text.length) return undefined;
      at++;
      // A line that goes on with a backslash is one line.
      word = text.charAt(at) === '\n' ? word : (word ?? '') + text.charAt(at);
    } else word = (word ?? '') + char;
  }
  if (word !== undefined) words.push(word);
  return words;
}

/** In double quotes a backslash stands for itself unless what follows it would mean something. */
const unescaped = (inner: string): string =>
  inner.replace(/\\([$`"\\\n])/g, (_, char: string) => (char === '\n' ? '' : char));

/** The name of a step: it is part of file names and of the names of lanes. */
export const stepName: Reader<string> = textOf(
  /^[A-Za-z0-9_-]+$/,
  'must consist of letters, digits, - and _',
);

/** Milliseconds, from a text such as `1m30s` or a number of seconds. */
export const duration: Reader<number> = byKind({
  text: mapped(text, (written, site) => {
    const ms = parseDuration(written);
    if (ms !== undefined && ms > 0) return ms;
    site.refuse(`must be a duration, not ${describe(written)}`, 'write it like "30s", "1m30s" or "250ms"');
    return undefined;
  }),
  number: mapped(positive, seconds => seconds * 1000),
});

/** All of it: what a shorter one names depends on what else there is. */
export const commitId: Reader<string> = textOf(
  /^([0-9a-f]{40}|[0-9a-f]{64})$/,
  'must be the whole id of a commit',
);

/** A list, or one text that is split as a shell would, without expanding anything. */
export const argumentList: Reader<readonly string[]> = byKind({
  list: listOf(anyText),
  text: mapped(anyText, (written, site) => {
    const words = splitArguments(written);
    if (!words) site.refuse('has a quote or a backslash with nothing after it', 'close it, or write a list');
    return words;
  }),
});

/** Keys of the case that, below a [table], become entries of that table. */
const caseWide = ['description', 'show_thinking', 'model', 'fidelity', 'live', 'timeline'];

/** `README.md = "..."` without quotes is the key `md` in a table `README`. */
export function hintForDots(site: Site): string | undefined {
  const [inner] = Object.keys(site.value as object);
  if (inner === undefined || /^[[{]/.test(site.written)) return undefined;
  return `put the name in quotes: "${site.path.at(-1)}.${inner}" = ...`;
}

const quotedKeys: Reader<string> = {
  schema: anyText.schema,
  read: site => {
    const key = String(site.path.at(-1));
    if (kindOf(site.value) === 'table') {
      site.refuse('must be a text, not a table', hintForDots(site));
      return undefined;
    }
    if (caseWide.includes(key) && !site.hasQuotedKey) {
      site.object({
        message: `\`${key}\` stands inside of a table here`,
        hint: `move it to the top of the file, before the first [table]; if it is a name, put it in quotes: "${key}"`,
        atKey: true,
      });
      return undefined;
    }
    return anyText.read(site);
  },
};

/** Texts by names of the author's own, such as paths. */
export const textsByName = (checkName: (name: string, site: Site) => void): Reader<Texts> =>
  mapOf(quotedKeys, checkName);

export const environment: Reader<Texts> = textsByName((name, site) => {
  if (name === '' || /[=\0]/.test(name))
    site.object({ message: `\`${name}\` cannot be the name of a variable`, atKey: true });
});

export const hintForCaseWide = (key: string): string | undefined =>
  [...caseWide, 'env', 'files', 'scripts', 'triggers', 'claims'].includes(key)
    ? `\`${key}\` belongs to the whole case: move it to the top of the file, before the first [table]`
    : undefined;

/** Why a path cannot be that of a file in a folder, as the rest of a sentence. */
export function objectToPath(path: string, folder: string): string | undefined {
  if (path.includes('\0')) return 'must not contain a NUL character';
  if (/^(\/|~|[a-z]:)/i.test(path)) return `must be relative to ${folder}`;
  if (path.includes('\\')) return 'must be written with / between folders';
  const parts = path.split('/');
  if (parts.includes('..')) return `must stay inside ${folder}`;
  if (parts.some(part => part.toLowerCase() === '.git')) return 'must not be inside of .git';
  if (parts.some(part => part === '' || part === '.'))
    return 'must name a file, with nothing empty between /';
  return undefined;
}

/** Objects to a key that is no path. */
export function checkPathKey(path: string, site: Site): void {
  const objection = objectToPath(path, 'the test repository');
  if (objection) site.object({ message: `the path \`${path}\` ${objection}`, atKey: true });
}

/** The first path that another one needs as a folder. */
export function fileInTheWay(paths: readonly string[]): { file: string; path: string } | undefined {
  const files = new Set(paths);
  for (const path of paths) {
    for (let end = path.indexOf('/'); end >= 0; end = path.indexOf('/', end + 1)) {
      const file = path.slice(0, end);
      if (files.has(file)) return { file, path };
    }
  }
  return undefined;
}

/**
 * What output is searched for: a text between slashes is a regular expression, perhaps with flags after it;
 * every other text is itself. Throws a SyntaxError for an expression that is none.
 */
export function patternOf(written: string): string | RegExp {
  const [, source, flags] = /^\/([\s\S]+)\/([dgimsuvy]*)$/.exec(written) ?? [];
  return source === undefined ? written : new RegExp(source, flags);
}

/**
 * What runs after what: steps in one group run at the same time. A group is a single step, or neighbours with the same
 * `concurrent_group`; a name that comes again after something else is another group.
 */
export function groupsOf({ steps }: Pick<CaseManifest, 'steps'>): readonly (readonly CaseStep[])[] {
  const groups: CaseStep[][] = [];
  for (const step of steps) {
    const last = groups.at(-1);
    const name = step.concurrentGroup;
    if (last && name !== undefined && last[0]?.concurrentGroup === name) last.push(step);
    else groups.push([step]);
  }
  return groups;
}
