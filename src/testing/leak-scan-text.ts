import { beginsAt, endsHere, type NamedPath, pathForms, placeholderName } from '../effects/redact/redact.ts';
import { mayHoldToken, tokenPatterns } from '../effects/redact/secret-patterns.ts';
import { formsOf, isSecretValue, type Secret } from '../effects/redact/secrets.ts';

/** What was found, and where in the text. */
export interface Finding {
  readonly kind: 'secret' | 'path';
  readonly name: string;
  /** Counts from 1. */
  readonly line: number;
}

/** Looks through bytes, each of which is one character of the text. */
export type Detect = (bytes: string) => readonly Finding[];

export interface DetectorOptions {
  readonly secrets: readonly Secret[];
  readonly paths: readonly NamedPath[];
  /** Looked for as a whole word. */
  readonly user?: string | undefined;
}

type Spot = Omit<Finding, 'line'> & { readonly at: number };
type Look = (text: string) => readonly Spot[];

export function createDetector({ secrets, paths, user }: DetectorOptions): Detect {
  const looks = [lookForSecrets(secrets), lookForTokens, lookForPaths(paths), lookForUser(user)];
  const ours = new Set([...secrets, ...tokenPatterns].map(({ name }) => placeholderName(name)));
  const holdsSecret = (name: string) =>
    !ours.has(name) && looks.slice(0, 2).some(look => look(name).length > 0);
  return bytes => {
    const text = bytes.replace(/<(?:PATH|SECRET):([\w.-]+)>/g, (placeholder, name: string) =>
      holdsSecret(name) ? placeholder : blank(placeholder),
    );
    const found = looks.flatMap(look => look(text)).map(spot => withLine(text, spot));
    return withoutRepeats([...found, ...hiddenByEscapes(text, looks)]);
  };
}

/** What is redacted is not looked at, and everything else stays where it is. */
const blank = (placeholder: string): string => `<${' '.repeat(placeholder.length - 2)}>`;

function lookForSecrets(secrets: readonly Secret[]): Look {
  const names = new Map<string, string>();
  for (const { name, value } of secrets.filter(secret => isSecretValue(secret.value))) {
    for (const form of formsOf(value)) names.set(asBytes(form), name);
  }
  return lookForAny(names, found => ({ kind: 'secret', name: found }));
}

const lookForTokens: Look = text =>
  (mayHoldToken(text) ? tokenPatterns : []).flatMap(({ name, pattern }) =>
    [...text.matchAll(pattern)].map(match => ({
      kind: 'secret' as const,
      name,
      at: match.index + (match[1]?.length ?? 0),
    })),
  );

function lookForPaths(paths: readonly NamedPath[]): Look {
  const names = new Map([...pathForms(paths)].map(([form, name]) => [asBytes(form), name]));
  const look = lookForAny(names, name => ({ kind: 'path', name }), endsHere);
  return text => look(text).filter(({ at }) => beginsAt(text, at));
}

function lookForUser(user: string | undefined): Look {
  if (user === undefined) return () => [];
  const word = new RegExp(`(?<![A-Za-z0-9_])${escaped(asBytes(user))}(?![A-Za-z0-9_])`, 'g');
  return text =>
    [...text.matchAll(word)].map(({ index }) => ({ kind: 'path', name: 'user name', at: index }));
}

function lookForAny(
  names: ReadonlyMap<string, string>,
  describe: (name: string) => Omit<Finding, 'line'>,
  after = '',
): Look {
  if (names.size === 0) return () => [];
  const longestFirst = [...names.keys()].sort((a, b) => b.length - a.length);
  const any = new RegExp(`(?:${longestFirst.map(escaped).join('|')})${after}`, 'g');
  return text =>
    [...text.matchAll(any)].map(match => ({ ...describe(names.get(match[0]) ?? ''), at: match.index }));
}

const escaped = (text: string): string => text.replace(/[\\^$.*+?()[\]{}|/-]/g, '\\$&');

const asBytes = (text: string): string => Buffer.from(text).toString('latin1');

function withLine(text: string, { kind, name, at }: Spot): Finding {
  let line = 1;
  for (let next = text.indexOf('\n'); next >= 0 && next < at; next = text.indexOf('\n', next + 1)) line++;
  return { kind, name, line };
}

/** JSON inside of JSON inside of JSON. */
const deepest = 3;

/** `\u0073ecret` is a secret as well. Line by line, because undoing an escape may make a new line. */
function hiddenByEscapes(text: string, looks: readonly Look[]): readonly Finding[] {
  if (!text.includes('\\')) return [];
  return text.split('\n').flatMap((content, index) => {
    const findings: Finding[] = [];
    let inner = content;
    for (let depth = 0; depth < deepest && inner.includes('\\'); depth++) {
      inner = withoutEscapes(inner);
      for (const { kind, name } of looks.flatMap(look => look(inner)))
        findings.push({ kind, name, line: index + 1 });
    }
    return findings;
  });
}

const controls: Readonly<Record<string, string>> = { b: '\b', f: '\f', n: '\n', r: '\r', t: '\t' };

const withoutEscapes = (text: string): string =>
  text.replace(/(?:\\u[0-9a-fA-F]{4})+|\\(["\\/bfnrt])/g, (found, plain: string | undefined) =>
    plain === undefined ? asBytes(unicode(found)) : (controls[plain] ?? plain),
  );

const unicode = (escapes: string): string =>
  String.fromCharCode(
    ...escapes
      .split('\\u')
      .slice(1)
      .map(code => Number.parseInt(code, 16)),
  );

function withoutRepeats(findings: readonly Finding[]): readonly Finding[] {
  const unique = new Map(
    findings.map(finding => [`${finding.line} ${finding.kind} ${finding.name}`, finding]),
  );
  return [...unique.values()].sort((a, b) => a.line - b.line);
}
