import { objectToPath, parseDuration } from '../../core/index.ts';
import { compilePattern, type Pattern } from '../../workflow/index.ts';
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
  type TomlReader,
  type TomlSite,
  text,
  textOf,
} from './reader.ts';

/** Splits a string like a shell, without expansions. Returns `undefined` if a quote is not closed. */
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
      // A backslash at the end of a line joins it with the next one.
      word = text.charAt(at) === '\n' ? word : (word ?? '') + text.charAt(at);
    } else word = (word ?? '') + char;
  }
  if (word !== undefined) words.push(word);
  return words;
}

/** In double quotes a backslash is literal unless a special character follows it. */
const unescaped = (inner: string): string =>
  inner.replace(/\\([$`"\\\n])/g, (_, char: string) => (char === '\n' ? '' : char));

/** Name of a command of the case. It becomes part of file names and lane names. */
export const stepName: TomlReader<string> = textOf(
  /^[A-Za-z0-9_-]+$/,
  'must consist of letters, digits, - and _',
);

/** Returns milliseconds, from a string such as `1m30s` or a number of seconds. */
export const duration: TomlReader<number> = byKind({
  text: mapped(text, (written, site) => {
    const ms = parseDuration(written);
    if (ms !== undefined && ms > 0) return ms;
    site.refuse(
      `must be a duration, not ${describe(written)}`,
      'write "30s", "1m30s" or "250ms", for example',
    );
    return undefined;
  }),
  number: mapped(positive, seconds => seconds * 1000),
});

/** Full commit id. An abbreviated one may become ambiguous. */
export const commitId: TomlReader<string> = textOf(
  /^([0-9a-f]{40}|[0-9a-f]{64})$/,
  'must be a full commit id',
);

/** A list, or a string that is split as in a shell, without expansions. */
export const argumentList: TomlReader<readonly string[]> = byKind({
  list: listOf(anyText),
  text: mapped(anyText, (written, site) => {
    const words = splitArguments(written);
    if (!words)
      site.refuse('has an unclosed quote or a trailing backslash', 'close the quote, or write a list');
    return words;
  }),
});

/** Keys of the whole case. Below a [table] header they are read as keys of that table. */
const caseWide = ['description', 'show_thinking', 'model', 'fidelity', 'live', 'timeline'];

/** Returns a hint for an unquoted `README.md = "..."`, which TOML reads as the key `md` in a table `README`. */
export function hintForDots(site: TomlSite): string | undefined {
  const [inner] = Object.keys(site.value as object);
  if (inner === undefined || /^[[{]/.test(site.written)) return undefined;
  return `put the name in quotes: "${site.path.at(-1)}.${inner}" = ...`;
}

const quotedKeys: TomlReader<string> = {
  schema: anyText.schema,
  read: site => {
    const key = String(site.path.at(-1));
    if (kindOf(site.value) === 'table') {
      site.refuse('must be a string, not a table', hintForDots(site));
      return undefined;
    }
    if (caseWide.includes(key) && !site.hasQuotedKey) {
      site.object({
        message: `\`${key}\` is inside a table here`,
        hint: `move it to the top of the file, before the first [table]; if it is a file or script name, put it in quotes: "${key}"`,
        atKey: true,
      });
      return undefined;
    }
    return anyText.read(site);
  },
};

/** A table of strings with arbitrary keys, such as paths. */
export const textsByName = (checkName: (name: string, site: TomlSite) => void): TomlReader<Texts> =>
  mapOf(quotedKeys, checkName);

export const environment: TomlReader<Texts> = textsByName((name, site) => {
  if (name === '' || /[=\0]/.test(name))
    site.object({ message: `invalid variable name \`${name}\``, atKey: true });
});

export const hintForCaseWide = (key: string): string | undefined =>
  [...caseWide, 'env', 'files', 'scripts', 'triggers', 'claims'].includes(key)
    ? `\`${key}\` applies to the whole case; move it to the top of the file, before the first [table]`
    : undefined;

/** Reports a key that is not a valid path. */
export function checkPathKey(path: string, site: TomlSite): void {
  const objection = objectToPath(path, 'the test repository');
  if (objection) site.object({ message: `the path \`${path}\` ${objection}`, atKey: true });
}

/** Returns the first path that has another file of the list as a folder. */
export function fileUsedAsFolder(paths: readonly string[]): { file: string; path: string } | undefined {
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
 * Parses an expected output. A text between slashes, optionally followed by flags, is a regular expression; any other
 * text is literal. Throws PatternError for a regular expression that is invalid or cannot be matched in linear time.
 */
export function patternOf(written: string): string | Pattern {
  const [, source, flags] = /^\/([\s\S]+)\/([dgimsuvy]*)$/.exec(written) ?? [];
  return source === undefined ? written : compilePattern(source, flags);
}

/**
 * Splits the commands into groups that run one after another. The commands of a group run in parallel. A group is a
 * single command, or adjacent commands with the same `concurrent_group`; a name that recurs later starts a new group.
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
