import { realpathSync } from 'node:fs';
import { isSecretField, mayHoldToken, signDetector, tokenPatterns } from './secret-patterns.ts';
import { formsOf, isSecretValue, jsonEscaped, type Secret } from './secrets.ts';

interface RedactorOptions {
  readonly paths: readonly NamedPath[];
  readonly secrets: readonly Secret[];
}

/**
 * Puts `<PATH:name>` and `<SECRET:NAME>` where paths of this machine and secrets stand. The same function is used on
 * every write and on both sides of every comparison. Doing it twice changes nothing.
 */
export interface Redactor {
  text(text: string): string;
  /** All texts in the value, and the keys of its maps. */
  json(value: unknown): unknown;
  /** The same as `json` of what the line says. Fast, because most lines hold nothing. */
  line(jsonLine: string): string;
  /** Lines of JSON, each with its line break. */
  lines(jsonLines: string): string;
  /** The paths of this machine where their placeholders stand; secrets stay hidden. */
  expand(value: unknown): unknown;
}

/** More rounds than anything needs in which what was replaced lets something else be seen. */
const mostRounds = 8;

export function createRedactor({ paths, secrets }: RedactorOptions): Redactor {
  const replacers = [replaceSecrets(secrets), replaceTokens, replacePaths(paths)];
  const mayHold = signDetector(signsOf({ paths, secrets }));

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
  };
}

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
  // Our own placeholders are passed over, because a secret may be a word like `SECRET_1`; what only looks like one is not.
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

/** Longest first, so that of two that begin alike the longer one is found. */
const anyOf = (texts: Iterable<string>): string =>
  [...texts]
    .sort((a, b) => b.length - a.length || (a < b ? -1 : 1))
    .map(text => text.replace(/[\\^$.*+?()[\]{}|/-]/g, '\\$&'))
    .join('|');

/** Whatever is replaced because it is known has one of these in it, plain or as JSON. */
function signsOf({ paths, secrets }: RedactorOptions): string {
  const known = [
    ...pathForms(paths).keys(),
    ...secrets.filter(({ value }) => isSecretValue(value)).flatMap(({ value }) => formsOf(value)),
  ];
  return anyOf(new Set(known.flatMap(text => [text, jsonEscaped(text)])));
}

/** The value of a header such as `authorization` is secret even if nothing in it looks like it. */
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
