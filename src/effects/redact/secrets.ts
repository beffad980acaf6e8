import { createHash, randomBytes } from 'node:crypto';

/** A value that must never be written to a file, and the name to write instead. */
export interface Secret {
  readonly name: string;
  readonly value: string;
}

type SearchedEnvironment = Readonly<Record<string, string | undefined>>;

/** Returns the variables whose names suggest a secret, except those whose value is short, a path or a common word. */
export function secretsOf(env: SearchedEnvironment): readonly Secret[] {
  const users = userNames.map(name => env[name]);
  return Object.entries(env).flatMap(([name, value]) =>
    value !== undefined && isSecretName(name) && isSecretValue(value) && !users.includes(value)
      ? [{ name, value }, ...passwordIn(name, value)]
      : [],
  );
}

/** Returns the secrets among the fields of a run's input: like `secretsOf`, at any depth. */
export function secretsOfInput(input: unknown): readonly Secret[] {
  if (typeof input !== 'object' || input === null) return [];
  return Object.entries(input).flatMap(([name, value]) =>
    typeof value === 'string' ? secretsOf({ [name]: value }) : secretsOfInput(value),
  );
}

const userNames = ['USER', 'LOGNAME', 'USERNAME', 'SUDO_USER'];

const words =
  /(?:^|_)(?:TOKENS?|SECRETS?|PASSWORDS?|PASSWD|PASSPHRASE|PWD|PASS|APIKEYS?|KEYS?|CREDENTIALS?|CREDS|AUTH|AUTHORIZATION|COOKIES?|PRIVATE|DSN|JWT|BEARER|PAT|WEBHOOK_URL|DATABASE_URL|CONNECTION_STRING)(?:_|$|\d)/;

const gluedWords = /TOKEN|SECRET|PASSWORD|PASSWD|APIKEY|CREDENTIAL/;

/** Names of variables that describe a secret (its location, name or lifetime) without containing it. */
const aboutASecret =
  /_(?:FILE|FILENAME|PATH|DIR|FOLDER|SOCK|SOCKET|PID|TYPE|METHOD|MODE|ENABLED|REQUIRED|TTL|TIMEOUT|EXPIRES?|EXPIRY|LENGTH|LIMIT|COUNT|BUDGET|REGION|ENDPOINT|HOST|PORT|NAMES?|ALIAS|ISSUER|USER|USERNAME|PROGRAM|ALGORITHM|ALG)$|(?:^|_)PUBLIC_|^(?:MAX|MIN|NUM)_|_TOKENS$/;

const publicNames = new Set([
  'REPRISE_NEXT_KEY',
  'PWD',
  'OLDPWD',
  'XAUTHORITY',
  'GPG_KEY',
  'GIT_ASKPASS',
  'SSH_ASKPASS',
]);

/** Whether the name suggests a secret. Case is ignored, so `npm_config__authToken` counts too. */
export function isSecretName(name: string): boolean {
  const upper = name.replace(/([a-z0-9])([A-Z])/g, '$1_$2').toUpperCase();
  if (publicNames.has(upper) || aboutASecret.test(upper)) return false;
  return words.test(upper) || gluedWords.test(upper);
}

const plainWords = new Set(
  (
    'true false yes no on off none null undefined default disabled enabled required optional always never auto ' +
    'password passwd secret changeme postgres mysql localhost admin administrator test testing example dummy ' +
    'placeholder development production staging anonymous bearer oauth oauth2 basic token apikey'
  ).split(' '),
);

/** Whether the value is a path. AWS keys may start with a slash, so only known top-level folders count. */
const isPath = (value: string): boolean =>
  /^(?:~|\.{1,2})\//.test(value) ||
  /^\/(?:home|Users|root|etc|var|tmp|opt|usr|run|mnt|srv|dev|proc|private|Library|workspaces?|app|data|secrets)\//.test(
    value,
  ) ||
  /^[A-Za-z]:[\\/]/.test(value);

/** Whether the value is worth hiding. Replacing short values and common words would only garble the text. */
export const isSecretValue = (value: string): boolean =>
  value.length >= 6 &&
  !/^\d{1,9}$/.test(value) &&
  !plainWords.has(value.toLowerCase()) &&
  !/<(?:PATH|SECRET):/.test(value) &&
  !isPath(value) &&
  (!isUrl(value) || hasPassword(value));

const isUrl = (value: string): boolean => /^[a-z][a-z0-9+.-]*:\/\/\S+$/i.test(value);

const hasPassword = (url: string): boolean =>
  /:\/\/[^\s/@]*:[^\s/]+@/.test(url) ||
  /[?&][\w-]*(?:key|token|secret|sig|password)=/i.test(url) ||
  /hooks?\b/.test(url);

/** Returns the password inside a URL: on its own it is just as secret. */
function passwordIn(name: string, value: string): readonly Secret[] {
  const password = /:\/\/[^\s/:@]*:([^\s/]+)@/.exec(value)?.[1];
  return password !== undefined && isSecretValue(password) ? [{ name, value: password }] : [];
}

/** Minimum length: a shorter form would match unrelated text. */
const shortest = 6;

/** Returns the forms of a value in text: plain, JSON-escaped, URL-encoded, base64, or a single line of it. */
export function formsOf(value: string): readonly string[] {
  const forms = [value, ...linesOf(value)].flatMap(text => [
    text,
    jsonEscaped(text),
    ...urlForms(text),
    ...base64Forms(text),
  ]);
  return [...new Set(forms)].filter(form => form.length >= shortest);
}

export const jsonEscaped = (text: string): string => JSON.stringify(text).slice(1, -1);

/** A private key is often printed with different line breaks, so each line counts. */
const linesOf = (value: string): readonly string[] =>
  value.includes('\n')
    ? value.split(/\r?\n/).filter(line => line.length >= 16 && !line.startsWith('-----'))
    : [];

function urlForms(text: string): readonly string[] {
  const wellFormed = Buffer.from(text).toString();
  const encoded = encodeURIComponent(wellFormed);
  return [
    encoded,
    encoded.replace(/%[0-9A-F]{2}/g, code => code.toLowerCase()),
    encodeURI(wellFormed),
    new URLSearchParams({ '': wellFormed }).toString().slice(1),
  ];
}

/**
 * Returns the encodings of the value inside a longer encoded text, such as `user:password`: one for each of the three
 * offsets at which it can start, without the characters at both ends that depend on the neighbors.
 */
function base64Forms(text: string): readonly string[] {
  const bytes = Buffer.from(text);
  return [0, 1, 2].flatMap(shift => {
    const encoded = Buffer.concat([Buffer.alloc(shift), bytes]).toString('base64');
    const first = Math.ceil((shift * 8) / 6);
    const last = Math.floor(((shift + bytes.length) * 8) / 6);
    const form = encoded.slice(first, last);
    return [form, form.replaceAll('+', '-').replaceAll('/', '_')];
  });
}

/** Hash of a form of a secret. Finds the secret in text, but does not contain it. */
export interface SecretMark {
  readonly name: string;
  readonly length: number;
  /** Cheap hash, which can be computed for every position of a text. */
  readonly sum: number;
  readonly hash: string;
}

export interface SecretMarks {
  readonly salt: string;
  readonly marks: readonly SecretMark[];
}

/** Returns marks of secrets, so that another process that does not know their values can search for them. */
export function marksOf(secrets: readonly Secret[]): SecretMarks {
  const salt = randomBytes(16).toString('hex');
  const marks = secrets
    .filter(({ value }) => isSecretValue(value))
    .flatMap(({ name, value }) => formsOf(value).map(form => ({ name, bytes: asBytes(form) })))
    .map(({ name, bytes }) => ({ name, length: bytes.length, sum: sumOf(bytes), hash: hashOf(salt, bytes) }));
  return { salt, marks };
}

/** Returns the positions of marked secrets in text with one character per byte. */
export function findMarked(
  { salt, marks }: SecretMarks,
  text: string,
): readonly { readonly name: string; readonly at: number }[] {
  const found: { readonly name: string; readonly at: number }[] = [];
  for (const [length, sums] of bySum(marks)) {
    if (text.length < length) continue;
    let power = 1;
    for (let step = 1; step < length; step++) power = Math.imul(power, base);
    let sum = sumOf(text.slice(0, length));
    for (let at = 0; ; at++) {
      const mark = sums.get(sum);
      if (mark && hashOf(salt, text.slice(at, at + length)) === mark.hash)
        found.push({ name: mark.name, at });
      if (at + length >= text.length) break;
      const shifted = Math.imul(sum - Math.imul(text.charCodeAt(at), power), base);
      sum = (shifted + text.charCodeAt(at + length)) | 0;
    }
  }
  return found;
}

function bySum(marks: readonly SecretMark[]): ReadonlyMap<number, ReadonlyMap<number, SecretMark>> {
  const lengths = new Map<number, Map<number, SecretMark>>();
  for (const mark of marks) {
    const sums = lengths.get(mark.length) ?? new Map<number, SecretMark>();
    lengths.set(mark.length, sums.set(mark.sum, mark));
  }
  return lengths;
}

const base = 0x01000193;

const sumOf = (bytes: string): number => {
  let sum = 0;
  for (let at = 0; at < bytes.length; at++) sum = (Math.imul(sum, base) + bytes.charCodeAt(at)) | 0;
  return sum;
};

const hashOf = (salt: string, bytes: string): string =>
  createHash('sha256').update(salt).update(bytes, 'latin1').digest('hex');

const asBytes = (text: string): string => Buffer.from(text).toString('latin1');
