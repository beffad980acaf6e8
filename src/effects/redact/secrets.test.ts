import { describe, expect, it } from 'vitest';
import { createRedactor } from './redact.ts';
import { findMarked, isSecretName, marksOf, secretsOf, secretsOfInput } from './secrets.ts';

const { text } = createRedactor({ paths: [], secrets: [] });
/** Joins the parts of a token, so that secret scanners do not flag this file. */
const fake = (...parts: readonly string[]) => parts.join('');
const letters = 'aB3dE6gH9jK2mN5pQ8sT1vW4yZ7'.repeat(3);

describe('secrets in environment variables', () => {
  it.each(
    'GITHUB_TOKEN ANTHROPIC_API_KEY OPENAI_KEY DB_PASSWORD PGPASSWORD MYSQL_PWD AWS_SECRET_ACCESS_KEY SENTRY_DSN npm_config__authToken SESSION_COOKIE SSH_PRIVATE_KEY BASIC_AUTH GCP_CREDENTIALS MY_PASSWD CLIENT_SECRET DATABASE_URL'.split(
      ' ',
    ),
  )('include %s because of its name', name => expect(isSecretName(name)).toBe(true));

  it.each(
    'PATH HOME PWD OLDPWD SSH_AUTH_SOCK TLS_KEY_FILE KEYBOARD KEYBOARD_LAYOUT MONKEY AUTHOR GIT_AUTHOR_NAME XAUTHORITY TOKEN_TTL MAX_TOKENS SSH_PUBLIC_KEY AUTH_METHOD COMPASS PASSENGER GIT_ASKPASS PATTERN'.split(
      ' ',
    ),
  )('do not include %s', name => expect(isSecretName(name)).toBe(false));

  it('do not include values that are short, common words, paths or the name of the user', () => {
    expect(
      secretsOf({
        USER: 'ada_lovelace',
        A_TOKEN: 'ada_lovelace',
        B_TOKEN: 'true',
        C_TOKEN: 'abc',
        D_PASSWORD: 'postgres',
        E_CREDENTIALS: '/home/ada/key.json',
        F_AUTH: '123456',
        G_DSN: 'https://sentry.example/1',
        H_SECRET: undefined,
        I_SECRET: 'correct-horse',
        J_KEY: '/aB3dE6gH9jK2mN5pQ8sT1vW4yZ7aB3dE6gH9jK2',
        EDITOR: 'correct-horse',
        K_DSN: 'postgres://ada:battery-staple@db/x',
      }),
    ).toEqual([
      { name: 'I_SECRET', value: 'correct-horse' },
      { name: 'J_KEY', value: '/aB3dE6gH9jK2mN5pQ8sT1vW4yZ7aB3dE6gH9jK2' },
      { name: 'K_DSN', value: 'postgres://ada:battery-staple@db/x' },
      { name: 'K_DSN', value: 'battery-staple' },
    ]);
  });
});

describe('redaction of tokens', () => {
  it.each([
    ['ANTHROPIC_KEY', fake('sk-', 'ant-', 'api03-', letters)],
    ['OPENAI_KEY', fake('sk-', letters.slice(0, 48))],
    ['OPENAI_KEY', fake('sk-', 'proj-', letters.slice(0, 48))],
    ['GITHUB_TOKEN', fake('gh', 'p_', letters.slice(0, 36))],
    ['GITHUB_TOKEN', fake('gh', 'o_', letters.slice(0, 36))],
    ['GITHUB_TOKEN', fake('gh', 's_', letters.slice(0, 36))],
    ['GITHUB_TOKEN', fake('github', '_pat_', letters.slice(0, 22), '_', letters)],
    ['GITLAB_TOKEN', fake('gl', 'pat-', letters.slice(0, 20))],
    ['SLACK_TOKEN', fake('xo', 'xb-', '123456789012-', letters.slice(0, 24))],
    ['AWS_ACCESS_KEY_ID', fake('AK', 'IA', 'ABCDEFGH12345678')],
    ['GOOGLE_KEY', fake('AI', 'za', letters.slice(0, 35))],
    ['NPM_TOKEN', fake('np', 'm_', letters.slice(0, 36))],
    ['PYPI_TOKEN', fake('py', 'pi-', 'AgEIcHlwaS5vcmc', letters)],
    ['STRIPE_KEY', fake('sk', '_live_', letters.slice(0, 24))],
    ['JWT', fake('ey', 'JhbGciOiJIUzI1NiJ9', '.', 'ey', 'JzdWIiOiIxMjM0In0', '.', letters.slice(0, 43))],
    [
      'PRIVATE_KEY',
      fake('-----BEGIN RSA ', 'PRIVATE KEY-----\n', letters, '\n-----END RSA ', 'PRIVATE KEY-----'),
    ],
    ['PRIVATE_KEY', fake('-----BEGIN ', 'PRIVATE KEY-----\\n', letters, '\\n-----END ', 'PRIVATE KEY-----')],
  ])('recognizes a token of the kind %s by its format', (name, token) => {
    expect(text(`a ${token}, b`)).toBe(`a <SECRET:${name}>, b`);
    expect(JSON.parse(createRedactor({ paths: [], secrets: [] }).line(JSON.stringify([token])))).toEqual([
      `<SECRET:${name}>`,
    ]);
  });

  it.each([
    ['Authorization: Bearer abc123', 'Authorization: Bearer <SECRET:AUTHORIZATION>'],
    ["-H 'authorization: Basic dTpwYXNz'", "-H 'authorization: Basic <SECRET:AUTHORIZATION>'"],
    ['{"Authorization":"Bearer abc123"}', '{"Authorization":"Bearer <SECRET:AUTHORIZATION>"}'],
    [
      '{\\"Authorization\\": \\"Bearer abc123\\"}',
      '{\\"Authorization\\": \\"Bearer <SECRET:AUTHORIZATION>\\"}',
    ],
    ['X-Api-Key: abc123', 'X-Api-Key: <SECRET:API_KEY>'],
    ['PRIVATE-TOKEN: abc123', 'PRIVATE-TOKEN: <SECRET:API_KEY>'],
    ['Set-Cookie: sid=abcdef; Path=/; HttpOnly\nx', 'Set-Cookie: <SECRET:COOKIE>\nx'],
    ['https://ada:pa55@example.org/x', 'https://ada:<SECRET:URL_PASSWORD>@example.org/x'],
    ['postgres://ada:p@55@db:5432/x', 'postgres://ada:<SECRET:URL_PASSWORD>@db:5432/x'],
    ['https://x.org/?a=1&access_token=abcdef#top', 'https://x.org/?a=1&access_token=<SECRET:URL_TOKEN>#top'],
    ['https://x.org/?key=abcdef&b=2', 'https://x.org/?key=<SECRET:URL_TOKEN>&b=2'],
    ['https://x.org/?token=abcdef', 'https://x.org/?token=<SECRET:URL_TOKEN>'],
  ])('recognizes a token by its context: %s', (given, expected) => expect(text(given)).toBe(expected));

  it('recognizes an AWS secret key by the key id near it', () => {
    const secret = 'aB3dE6gH9jK2mN5pQ8sT1vW4yZ7aB3/E6gH9jK2m';
    const id = fake('AK', 'IA', 'ABCDEFGH12345678');
    expect(text(`${id} ${secret}`)).toBe('<SECRET:AWS_ACCESS_KEY_ID> <SECRET:AWS_SECRET_ACCESS_KEY>');
    expect(text(`${secret} ${id}`)).toBe('<SECRET:AWS_SECRET_ACCESS_KEY> <SECRET:AWS_ACCESS_KEY_ID>');
    expect(text(`aws_secret_access_key = ${secret}`)).toBe(
      'aws_secret_access_key = <SECRET:AWS_SECRET_ACCESS_KEY>',
    );
    expect(text(secret)).toBe(secret);
  });

  it.each([
    '0123456789abcdef0123456789abcdef01234567',
    'npm_config_user_agent npm_lifecycle_event',
    'sk-fading-circle-and-more-names-of-classes',
    'the ghp_ prefix, and sk-',
    'https://example.org:8080/a@b',
    'git@github.com:ada/engine.git ssh://git@github.com/ada/engine',
    'https://${USER}:${TOKEN}@example.org',
    'Basic authentication, bearer of news, authorization: none',
    '?page=2&token=1',
    '9f1c2d3e-4b5a-6978-8796-a5b4c3d2e1f0',
    '-----BEGIN CERTIFICATE-----\nMIIB\n-----END CERTIFICATE-----',
    'cookie: a nice one',
  ])('finds no token in %s', given => expect(text(given)).toBe(given));

  it('takes linear time for very long text', () => {
    for (const piece of ['a', 'eyJ', '://', 'A'.repeat(40), '-----BEGIN ', 'authorization: ', 'sk-', '/']) {
      const long = piece.repeat(Math.ceil(200_000 / piece.length));
      expect(text(`${long} AK${'IA'}ABCDEFGH12345678`)).toContain('<SECRET:AWS_ACCESS_KEY_ID>');
    }
  });
});

describe('secrets in the input of a run', () => {
  it('are found by name at any depth', () => {
    const input = {
      title: 'a title',
      db: { password: 'correct-horse' },
      list: [{ apiKey: 'battery-staple' }],
      n: 1,
    };
    expect(secretsOfInput(input)).toEqual([
      { name: 'password', value: 'correct-horse' },
      { name: 'apiKey', value: 'battery-staple' },
    ]);
    expect(secretsOfInput(null)).toEqual([]);
  });
});

describe('marks of secrets', () => {
  const marks = marksOf([
    { name: 'A', value: 'correct-horse' },
    { name: 'B', value: 'gr\u00fc\u00dfe-stapel' },
  ]);

  it('do not contain the secret', () => {
    expect(JSON.stringify(marks)).not.toContain('correct');
  });

  it('find the secret at any position, plain and encoded', () => {
    const bytes = (given: string) => Buffer.from(given).toString('latin1');
    const found = (given: string) => findMarked(marks, bytes(given)).map(({ name, at }) => `${name}@${at}`);
    expect(found('correct-horse')).toEqual(['A@0']);
    expect(found('xx correct-horse yy correct-horse')).toEqual(['A@3', 'A@20']);
    expect(found('say gr\u00fc\u00dfe-stapel')).toEqual(['B@4']);
    expect(found(Buffer.from('u:correct-horse').toString('base64'))).toHaveLength(1);
    expect(found('correct-house and a long text that has nothing in it')).toEqual([]);
  });
});
