/** Pattern of a known kind of secret. */
export interface TokenPattern {
  /** Name in the placeholder and in the report of a leak. */
  readonly name: string;
  /** Global pattern. Its first group is kept; the rest of the match is the secret. */
  readonly pattern: RegExp;
}

interface SecretKind {
  readonly name: string;
  /** Cheap pattern that matches any text with such a secret, plain or as JSON. */
  readonly sign: string;
  readonly before?: string;
  readonly secret: string;
  readonly anyCase?: boolean;
}

const notInAWord = '(?<![A-Za-z0-9])';
/** Separator between the name and the value of a header, including in JSON and in JSON within a string. */
const colon = String.raw`[\\"']{0,8}\s*[:=]\s*[\\"']{0,8}`;
const schemes = '(?:bearer|basic|token)';
const awsKeyId = '(?:A[KS]IA[A-Z0-9]{16}|<SECRET:AWS_ACCESS_KEY_ID>)';
/** Forty characters that are neither a SHA nor a word. */
const awsSecret =
  '(?<![A-Za-z0-9+/=])(?=[a-z0-9+/]*[A-Z])(?=[A-Z0-9+/]*[a-z])(?=[A-Za-z+/]*[0-9])[A-Za-z0-9+/]{40}(?![A-Za-z0-9+/=])';
const secretHeaders =
  '(?:x-api-key|api-key|x-goog-api-key|x-auth-token|x-access-token|private-token|x-vault-token|x-amz-security-token)';
const secretParameters =
  '(?:access_token|refresh_token|id_token|auth_token|token|api[_-]?key|key|client_secret|secret|password|passwd|sig|signature|x-amz-signature|x-amz-security-token|x-goog-signature)';
const keyBegins = '-----BEGIN [A-Z0-9 ]*PRIVATE KEY(?: BLOCK)?-----';
const keyEnds = '-----END [A-Z0-9 ]*PRIVATE KEY(?: BLOCK)?-----';

const kinds: readonly SecretKind[] = [
  {
    name: 'PRIVATE_KEY',
    sign: '-----BEGIN ',
    secret: String.raw`${keyBegins}(?:[A-Za-z0-9+/=\s\\:,.()-]*?${keyEnds}|[A-Za-z0-9+/=\s\\]*)`,
  },
  { name: 'ANTHROPIC_KEY', sign: 'sk-', secret: String.raw`${notInAWord}sk-ant-[\w-]{16,}` },
  {
    name: 'OPENAI_KEY',
    sign: 'sk-',
    secret: String.raw`${notInAWord}sk-(?:(?:proj|svcacct|admin|or-v1)-[\w-]{16,}|[A-Za-z0-9]{20,})`,
  },
  {
    name: 'GITHUB_TOKEN',
    sign: 'gh[oprsu]_|github_pat_',
    secret: String.raw`${notInAWord}(?:gh[oprsu]_[A-Za-z0-9]{20,}|github_pat_\w{20,})`,
  },
  {
    name: 'GITLAB_TOKEN',
    sign: 'gl[a-z]+-',
    secret: String.raw`${notInAWord}gl(?:pat|dt|rt|ft|ptt|soat|cbt|agent)-[\w-]{16,}`,
  },
  {
    name: 'SLACK_TOKEN',
    sign: 'xox[a-z]-|xapp-',
    secret: `${notInAWord}(?:xox[a-z]|xapp)-[A-Za-z0-9-]{10,}`,
  },
  {
    name: 'AWS_SECRET_ACCESS_KEY',
    sign: 'A[KS]IA|AWS_ACCESS_KEY_ID',
    secret: `${awsSecret}(?:(?<=${awsKeyId}[^]{40,240})|(?=[^]{0,200}${awsKeyId}))`,
  },
  {
    name: 'AWS_SECRET_ACCESS_KEY',
    sign: 'secret_?access_?key',
    before: `secret_?access_?key${colon}`,
    secret: '[A-Za-z0-9+/]{40}(?![A-Za-z0-9+/=])',
    anyCase: true,
  },
  {
    name: 'AWS_ACCESS_KEY_ID',
    sign: 'A[KS]IA',
    secret: `${notInAWord}A[KS]IA[A-Z0-9]{16}(?![A-Za-z0-9])`,
  },
  { name: 'GOOGLE_KEY', sign: 'AIza', secret: String.raw`${notInAWord}AIza[\w-]{35}` },
  { name: 'GOOGLE_TOKEN', sign: 'ya29\\.', secret: String.raw`${notInAWord}ya29\.[\w-]{20,}` },
  { name: 'NPM_TOKEN', sign: 'npm_', secret: `${notInAWord}npm_[A-Za-z0-9]{36}(?![A-Za-z0-9])` },
  { name: 'PYPI_TOKEN', sign: 'pypi-', secret: String.raw`${notInAWord}pypi-(?:AgE[\w-]{16,}|[\w-]{60,})` },
  {
    name: 'STRIPE_KEY',
    sign: '[rs]k_(?:live|test)_',
    secret: `${notInAWord}[rs]k_(?:live|test)_[A-Za-z0-9]{16,}`,
  },
  { name: 'HUGGING_FACE_TOKEN', sign: 'hf_', secret: `${notInAWord}hf_[A-Za-z0-9]{30,}` },
  {
    name: 'JWT',
    sign: 'eyJ',
    secret: String.raw`${notInAWord}eyJ[\w-]{8,}\.eyJ[\w-]{8,}\.[\w-]{8,}`,
  },
  {
    name: 'AUTHORIZATION',
    sign: 'authorization',
    before: `authorization${colon}(?:${schemes}\\s+)`,
    secret: '[\\w.~+/=:-]{6,}',
    anyCase: true,
  },
  {
    name: 'AUTHORIZATION',
    sign: 'authorization',
    before: `authorization${colon}`,
    secret: `(?!${schemes}\\s)[\\w.~+/=-]{16,}`,
    anyCase: true,
  },
  {
    name: 'BEARER_TOKEN',
    sign: 'bearer',
    before: `${notInAWord}bearer\\s+`,
    secret: '(?=[a-z.~+/=_-]*[0-9])[\\w.~+/=-]{16,}',
    anyCase: true,
  },
  {
    name: 'API_KEY',
    sign: 'api-key|-token',
    before: `${notInAWord}${secretHeaders}${colon}`,
    secret: '[\\w.~+/=-]{6,}',
    anyCase: true,
  },
  {
    name: 'COOKIE',
    sign: 'cookie',
    before: `${notInAWord}(?:set-)?cookie${colon}`,
    secret: String.raw`[\w.-]+=[^\s;"'<\\]{6,}(?:;\s*[\w.-]+(?:=[^\s;"'<\\]*)?)*`,
    anyCase: true,
  },
  {
    name: 'URL_PASSWORD',
    sign: String.raw`:\/\/[^\s/"]*@`,
    before: String.raw`:\/\/[^\s/:@?#"'<>\\]*:`,
    secret: String.raw`(?!\$)[^\s/?#"'<>\\]+(?=@)`,
  },
  {
    name: 'URL_TOKEN',
    sign: `[?&]${secretParameters}=`,
    before: `[?&]${secretParameters}=`,
    secret: String.raw`(?!\$)[^\s&#"'<>\\;,)\]}]{6,}`,
    anyCase: true,
  },
];

export const tokenPatterns: readonly TokenPattern[] = kinds.map(({ name, before = '', secret, anyCase }) => ({
  name,
  pattern: new RegExp(`(${before})(?:${secret})`, anyCase ? 'gi' : 'g'),
}));

const signsOf = (chosen: readonly SecretKind[]) => [...new Set(chosen.map(({ sign }) => sign))].join('|');

/** Text, or a line of JSON, that matches neither pattern contains no token. Ignoring case is slow, so there are two. */
const signs = {
  exact: signsOf(kinds.filter(({ anyCase }) => !anyCase)),
  anyCase: signsOf(kinds.filter(({ anyCase }) => anyCase)),
} as const;

/** Returns a test for whether text may contain a token, or a match of `others`, the source of a regular expression. */
export function signDetector(others = ''): (text: string) => boolean {
  const exact = new RegExp(others === '' ? signs.exact : `${others}|${signs.exact}`);
  const anyCase = new RegExp(signs.anyCase, 'i');
  return text => exact.test(text) || anyCase.test(text);
}

export const mayHoldToken = signDetector();

/** Whether the name is that of a header whose value is always secret. */
export const isSecretField = (name: string): boolean => secretField.test(name);

const secretField = new RegExp(`^(?:(?:proxy-)?authorization|(?:set-)?cookie|${secretHeaders})$`, 'i');
