import { realpathSync } from 'node:fs';
import { isSecretField, mayHoldToken, signDetector, tokenPatterns } from './secret-patterns.ts';
import { formsOf, isSecretValue, jsonEscaped, type Secret } from './secrets.ts';

interface RedactorOptions {
  readonly paths: readonly NamedPath[];
  readonly secrets: readonly Secret[];
}

/**
 * Replaces local paths with `<PATH:name>` and secrets with `<SECRET:NAME>`. The same function is used on every write
 * and on both sides of every comparison. It is idempotent.
 */
export interface Redactor {
  text(text: string): string;
  /** Redacts all strings in the value, including the keys of its maps. */
  json(value: unknown): unknown;
  /** Redacts a line of JSON, with the same result as `json` of the parsed line. Fast if there is nothing to redact. */
  line(jsonLine: string): string;
  /** Redacts lines of JSON, each with its line break. */
  lines(jsonLines: string): string;
  /** Replaces the placeholders of paths with local paths. Secrets stay hidden. */
  expand(value: unknown): unknown;
  /** Secrets known so far. */
  readonly secrets: readonly Secret[];
  /** Adds secrets that become known during a run: those in the variables of its steps and agents, and in its input. */
  learn(secrets: readonly Secret[]): void;
  /** Calls back after new secrets were learned. Text that was written before may contain them. */
  onLearned(listener: () => void): void;
}

/** Upper limit for the rounds in which a replacement exposes another match; real text needs fewer. */
const mostRounds = 8;

export function createRedactor({ paths, secrets: given }: RedactorOptions): Redactor {
  let secrets = [...given];
  const known = new Set(secrets.map(({ value }) => value));
  const listeners: (() => void)[] = [];
  const inPaths = replacePaths(paths);
  let replacers = [replaceSecrets(secrets), replaceTokens, inPaths];
  let mayHold = signDetector(signsOf({ paths, secrets }));

  const learn = (found: readonly Secret[]): void => {
    const unknown = found.filter(({ value }) => isSecretValue(value) && !known.has(value));
    if (unknown.length === 0) return;
    for (const { value } of unknown) known.add(value);
    secrets = [...secrets, ...unknown];
    replacers = [replaceSecrets(secrets), replaceTokens, inPaths];
    mayHold = signDetector(signsOf({ paths, secrets }));
    for (const listener of listeners) listener();
  };

  const text = (given: string): string => {
    if (!mayHold(given)) return given;
    let current = given;
    for (let round = 0; round < mostRounds; round++) {
      const next = replacers.reduce((replaced, replace) => replace(replaced), current);
      if (next === current) break;
      current = next;
    }
    return current;
  };

  const json = (value: unknown): unknown => mapTexts(asData(value), text, hideField);

  const line = (jsonLine: string): string => {
    if (!mayHold(jsonLine)) return jsonLine;
    const value = parsed(jsonLine);
    return value === undefined ? text(jsonLine) : JSON.stringify(json(value.data));
  };

  const pathOf = new Map(paths.map(({ name, path }) => [placeholderName(name), withoutSlash(path)]));
  const expandText = (given: string) =>
    given.replace(/<PATH:([\w.-]+)>/g, (placeholder, name: string) => pathOf.get(name) ?? placeholder);

  return {
    text,
    json,
    line,
    lines: jsonLines => (mayHold(jsonLines) ? jsonLines.split('\n').map(line).join('\n') : jsonLines),
    expand: value => mapTexts(value, expandText),
    get secrets() {
      return secrets;
    },
    learn,
    onLearned: listener => void listeners.push(listener),
  };
}

/** Renames the state folder in a recording of a version that kept it below the project. */
export const withStatePlace = (recorded: string): string =>
  recorded
    .replace(/<PATH:repo>\/\.reprise\/state\/(landing|scratch)(?=\/)/g, '<PATH:repo>/.reprise/workspaces/.$1')
    .replace(/<PATH:repo>\/\.reprise\/state(?![\w.-])/g, '<PATH:state>');

type Replace = (text: string) => string;

const placeholder = '<(?:PATH|SECRET):[\\w.-]+>';

export const placeholderName = (name: string): string => name.replace(/[^\w.-]/g, '_');

function replaceSecrets(secrets: readonly Secret[]): Replace {
  const names = new Map<string, string>();
  for (const { name, value } of secrets.filter(secret => isSecretValue(secret.value))) {
    for (const form of formsOf(value))
      if (!names.has(form)) names.set(form, `<SECRET:${placeholderName(name)}>`);
  }
  if (names.size === 0) return text => text;
  const forms = anyOf(names.keys());
  const known = new RegExp(`${placeholder}|${forms}`, 'g');
  const alone = new RegExp(forms, 'g');
  const ours = new Set(names.values());
  // Skips our own placeholders, because a secret may be a word like `SECRET_1`. Other text in that form is redacted.
  return text =>
    text.replace(
      known,
      found => names.get(found) ?? (ours.has(found) ? found : replaceInside(found, alone, names)),
    );
}

const replaceInside = (found: string, forms: RegExp, names: ReadonlyMap<string, string>): string => {
  const [kind = '', inside = ''] = found.slice(0, -1).split(/(?<=:)/, 2);
  return `${kind}${inside.replace(forms, form => names.get(form) ?? form)}>`;
};

const replaceTokens: Replace = given =>
  mayHoldToken(given)
    ? tokenPatterns.reduce(
        (text, { name, pattern }) =>
          text.replace(pattern, (_, before: string) => `${before}<SECRET:${name}>`),
        given,
      )
    : given;

function replacePaths(paths: readonly NamedPath[]): Replace {
  const names = pathForms(paths);
  if (names.size === 0) return text => text;
  const known = new RegExp(`(?:${anyOf(names.keys())})${endsHere}`, 'g');
  return given =>
    given.replace(known, (found, offset: number, text: string) =>
      beginsAt(text, offset) ? `<PATH:${placeholderName(names.get(found) ?? '')}>` : found,
    );
}

/** Longest first, so that the longer of two strings with the same prefix matches. */
const anyOf = (texts: Iterable<string>): string =>
  [...texts]
    .sort((a, b) => b.length - a.length || (a < b ? -1 : 1))
    .map(text => text.replace(/[\\^$.*+?()[\]{}|/-]/g, '\\$&'))
    .join('|');

/** A pattern that matches any text with a known path or secret, plain or JSON-escaped. */
function signsOf({ paths, secrets }: RedactorOptions): string {
  const known = [
    ...pathForms(paths).keys(),
    ...secrets.filter(({ value }) => isSecretValue(value)).flatMap(({ value }) => formsOf(value)),
  ];
  return anyOf(new Set(known.flatMap(text => [text, jsonEscaped(text)])));
}

/** Hides the value of a header such as `authorization` even if it does not look like a secret. */
const hideField = (key: string, value: unknown): unknown =>
  typeof value === 'string' && value !== '' && isSecretField(key) && !wholePlaceholder.test(value)
    ? `<SECRET:${placeholderName(key).toUpperCase()}>`
    : value;

const wholePlaceholder = new RegExp(`^(?:\\w+ )?${placeholder}$`);

function parsed(line: string): { readonly data: unknown } | undefined {
  try {
    return { data: JSON.parse(line) };
  } catch {
    return undefined;
  }
}

const asData = (value: unknown): unknown =>
  typeof value === 'object' && value !== null && 'toJSON' in value && typeof value.toJSON === 'function'
    ? value.toJSON()
    : value;

function mapTexts(
  value: unknown,
  change: Replace,
  field: (key: string, value: unknown) => unknown = (_, given) => given,
): unknown {
  if (typeof value === 'string') return change(value);
  if (typeof value !== 'object' || value === null) return value;
  if (Array.isArray(value)) return value.map(item => mapTexts(asData(item), change, field));
  return Object.fromEntries(
    Object.entries(value).map(([key, given]) => [
      change(key),
      field(key, mapTexts(asData(given), change, field)),
    ]),
  );
}

/** A local folder, and the name written to tapes instead: `<PATH:repo>`. */
export interface NamedPath {
  readonly name: string;
  readonly path: string;
}

/** Returns all spellings of the paths, each with the name of its path. */
export function pathForms(paths: readonly NamedPath[]): ReadonlyMap<string, string> {
  const forms = new Map<string, string>();
  for (const { name, path } of paths) {
    for (const form of formsOfPath(path)) if (!forms.has(form)) forms.set(form, name);
  }
  return forms;
}

const withoutSlash = (path: string): string => (path.length > 1 ? path.replace(/[\\/]+$/, '') : path);

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

/** On macOS these folders are links into `/private`, and programs print either form. */
function twins(path: string): readonly string[] {
  if (/^\/(?:tmp|var|etc)(?:\/|$)/.test(path)) return [path, `/private${path}`];
  if (/^\/private\/(?:tmp|var|etc)(?:\/|$)/.test(path)) return [path, path.slice('/private'.length)];
  return [path];
}

const letters = String.raw`\w\u00c0-\u1fff\u2070-\uffff`;

/** `/tmp/a` does not match in `/tmp/ab` or `/tmp/a.txt`, but it does in `/tmp/a/b` and at the end of a sentence. */
export const endsHere = `(?![${letters}@+~%-]|\\.[${letters}])`;

const partOfPathBefore = new RegExp(String.raw`[${letters}.@+~%*)\]}-]$`);
const flagBefore = /(?:^|[^\w-])-[A-Za-z]$/;
const longestDiffLine = 1000;

/** Git writes `a` and `b` before the paths of a diff, without a slash if these are absolute. */
const diffBefore = /(?:diff --git (?:a\/\S* )?|--- |\+\+\+ )[ab]$/;
const placeholderBefore = /<(?:PATH|SECRET):[\w.-]+>$/;

/** `/tmp/a` does not match in `/var/tmp/a` or `https://tmp/a`, but it does in `-I/tmp/a` and `file:///tmp/a`. */
export function beginsAt(text: string, offset: number): boolean {
  const before = text.slice(Math.max(0, offset - 3), offset);
  if (before.endsWith('/')) return before === '://';
  if (before.endsWith('>')) return !placeholderBefore.test(text.slice(Math.max(0, offset - 100), offset));
  if (!partOfPathBefore.test(before) || flagBefore.test(before)) return true;
  return /[ab]$/.test(before) && diffBefore.test(text.slice(Math.max(0, offset - longestDiffLine), offset));
}
