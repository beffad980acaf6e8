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

const userNames = ['USER', 'LOGNAME', 'USERNAME', 'SUDO_USER'];

const words =
  /(?:^|_)(?:TOKENS?|SECRETS?|PASSWORDS?|PASSWD|PASSPHRASE|PWD|PASS|APIKEYS?|KEYS?|CREDENTIALS?|CREDS|AUTH|AUTHORIZATION|COOKIES?|PRIVATE|DSN|JWT|BEARER|PAT|WEBHOOK_URL|DATABASE_URL|CONNECTION_STRING)(?:_|$|\d)/;

const gluedWords = /TOKEN|SECRET|PASSWORD|PASSWD|APIKEY|CREDENTIAL/;

/** Names of variables that describe a secret (its location, name or lifetime) without containing it. */
const aboutASecret =
  /_(?:FILE|FILENAME|PATH|DIR|FOLDER|SOCK|SOCKET|PID|TYPE|METHOD|MODE|ENABLED|REQUIRED|TTL|TIMEOUT|EXPIRES?|EXPIRY|LENGTH|LIMIT|COUNT|BUDGET|REGION|ENDPOINT|HOST|PORT|NAMES?|ALIAS|ISSUER|USER|USERNAME|PROGRAM|ALGORITHM|ALG)$|(?:^|_)PUBLIC_|^(?:MAX|MIN|NUM)_|_TOKENS$/;

const publicNames = new Set(['PWD', 'OLDPWD', 'XAUTHORITY', 'GPG_KEY', 'GIT_ASKPASS', 'SSH_ASKPASS']);

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
