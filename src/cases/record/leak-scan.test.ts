import { execFileSync } from 'node:child_process';
import { mkdirSync, mkdtempSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { gzipSync } from 'node:zlib';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { describeLeak, type LeakScanOptions, leakError, scanForLeaks } from './leak-scan.ts';

const value = 'correct-horse/"battery"';
const secrets = [
  { name: 'DEPLOY_TOKEN', value },
  { name: 'SHORT', value: 'abc' },
];
const github = `gh${'p_'}${'aB3'.repeat(12)}`;

let root: string;
let folder: string;
beforeEach(() => {
  root = mkdtempSync(join(tmpdir(), 'reprise-leaks-'));
  folder = join(root, 'case');
  mkdirSync(folder);
});
afterEach(() => rmSync(root, { recursive: true }));

function write(path: string, content: string | Buffer) {
  mkdirSync(dirname(join(folder, path)), { recursive: true });
  writeFileSync(join(folder, path), content);
}

const scan = async (more: Partial<LeakScanOptions> = {}) => {
  const leaks = await scanForLeaks({ folder, secrets, home: '/home/lovelace', user: 'lovelace', ...more });
  const text = JSON.stringify([leaks, leaks.map(describeLeak)]);
  for (const hidden of [value, 'correct-horse', github]) expect(text).not.toContain(hidden);
  return leaks;
};

describe('a recording without leaks', () => {
  it('may contain placeholders, SHAs, short values and arbitrary bytes', async () => {
    write('a.score', '{"main":"0123456789abcdef0123456789abcdef01234567"}\n');
    write(
      'sessions/a.jsonl',
      '{"h":"Authorization: Bearer <SECRET:AUTHORIZATION>","at":"<PATH:home>/abc"}\n',
    );
    write('blobs/x', Buffer.from(Array.from({ length: 4096 }, (_, at) => (at * 7) % 256)));
    expect(await scan()).toEqual([]);
  });
});

describe('a planted secret', () => {
  const json = JSON.stringify;
  it.each([
    ['in plain text', `x\ny${value}z\n`, 2],
    ['in JSON', json({ value }), 1],
    ['in JSON inside JSON', json({ text: json({ text: json({ value }) }) }), 1],
    ['with unusual escapes', `{"v":"c\\u006frrect\\u002dhorse\\/\\"battery\\""}`, 1],
    ['in a URL', `\n\nhttps://x.org/${encodeURIComponent(value)}`, 3],
    ['inside a placeholder', `<SECRET:${Buffer.from(value).toString('base64url')}>`, 1],
    ['in base64', Buffer.from(`user:${value}`).toString('base64'), 1],
    ['next to invalid UTF-8', Buffer.concat([Buffer.from([0xff, 0xfe, 0]), Buffer.from(value)]), 1],
    ['in gzipped data', gzipSync(value), 1],
  ])('is found %s', async (_, content, line) => {
    write('sessions/agent.a.0.jsonl', content);
    expect(await scan()).toEqual([
      { kind: 'secret', name: 'DEPLOY_TOKEN', file: 'sessions/agent.a.0.jsonl', line },
    ]);
  });

  it('is found in a file name, which is then redacted', async () => {
    write(`blobs/${github}`, 'x');
    expect(await scan()).toEqual([
      { kind: 'secret', name: 'GITHUB_TOKEN', file: 'blobs/<SECRET:GITHUB_TOKEN>' },
    ]);
  });

  it('is found in the target of a link, which is not followed', async () => {
    symlinkSync(`/nowhere/${github}`, join(folder, 'link'));
    expect(await scan()).toMatchObject([{ name: 'GITHUB_TOKEN', file: 'link' }]);
  });

  it('is found by its format if it is in no variable', async () => {
    write('x__a.vcr', `{}\n{"args":{"url":"https://x:${'hunter22'}@x.org"},"ok":"${github}"}\n`);
    expect(await scan({ secrets: [] })).toEqual([
      { kind: 'secret', name: 'GITHUB_TOKEN', file: 'x__a.vcr', line: 2 },
      { kind: 'secret', name: 'URL_PASSWORD', file: 'x__a.vcr', line: 2 },
    ]);
  });
});

describe('a token of a well-known service', () => {
  /** Joins the parts of a token, so that secret scanners do not flag this file. */
  const fake = (...parts: readonly string[]) => parts.join('');
  const random = 'a8f3k2m9x7q1z5w4c6v0b2n8d3g7h1j9';

  it.each([
    [
      'DIGITALOCEAN_PAT',
      fake('dop', '_v1_', '3e1f5a7c9b2d4f6081a3c5e7092b4d6f8a1c3e5f70921b4d6f8a1c3e5f709b2d'),
    ],
    [
      'SENDGRID_API_TOKEN',
      fake('SG', '.', 'ngeVfQFYQlKU0ufo8x5d1A', '.TwL2iGABf9DHoTf-09kqeF8tAmbihYzrnopKc-1s5cr'),
    ],
    ['SHOPIFY_ACCESS_TOKEN', fake('shp', 'at_', '3e1f5a7c9b2d4f6081a3c5e7092b4d6f')],
    ['GRAFANA_SERVICE_ACCOUNT_TOKEN', fake('gl', 'sa_', random, '_3e1f5a7c')],
    ['LINEAR_API_KEY', fake('lin', '_api_', random, 'Q2w3E4r5')],
  ])('is a leak: %s', async (name, token) => {
    write('a.jsonl', `{"output":"${token.replaceAll('"', '\\"')} "}\n`);
    const found = (await scan()).map(leak => leak.name);
    expect(found).toContain(name);
  });

  it('is no leak if it is an example without randomness', async () => {
    write('a.md', `${fake('SG', '.', 'x'.repeat(22), '.', 'x'.repeat(43))} and the word sendgrid_api_key\n`);
    expect(await scan()).toEqual([]);
  });
});

describe('a local path', () => {
  it('is a leak, and so is the user name', async () => {
    write('a.snap', 'at /home/lovelace/x\nby lovelace\nlovelaces /home/lovelaces\n/srv/work/x\n');
    expect(await scan({ paths: [{ name: 'repo', path: '/srv/work' }] })).toEqual([
      { kind: 'path', name: 'home', file: 'a.snap', line: 1 },
      { kind: 'path', name: 'user name', file: 'a.snap', line: 1 },
      { kind: 'path', name: 'user name', file: 'a.snap', line: 2 },
      { kind: 'path', name: 'repo', file: 'a.snap', line: 4 },
    ]);
  });

  it('is a leak without its user name if that is a common one', async () => {
    write('a.snap', 'the root of it all, in /root/x');
    expect(await scan({ user: 'root', home: '/root' })).toEqual([
      { kind: 'path', name: 'home', file: 'a.snap', line: 1 },
    ]);
  });
});

describe('the search of packs', () => {
  const env = {
    PATH: process.env['PATH'],
    ...{ GIT_CONFIG_NOSYSTEM: '1', GIT_CONFIG_GLOBAL: '/dev/null' },
    ...{
      GIT_AUTHOR_NAME: 'lovelace',
      GIT_AUTHOR_EMAIL: 'a@x',
      GIT_COMMITTER_NAME: 'lovelace',
      GIT_COMMITTER_EMAIL: 'a@x',
    },
  };
  const git = (args: readonly string[], input = '') =>
    execFileSync('git', ['-C', join(root, 'repo'), ...args], { env, input, maxBuffer: 2 ** 26 });
  const commit = (path: string, content: string) => {
    mkdirSync(dirname(join(root, 'repo', path)), { recursive: true });
    writeFileSync(join(root, 'repo', path), content);
    git(['add', '-A']);
    git(['commit', '--quiet', '-m', `change ${path.length}`]);
    return git(['rev-parse', 'HEAD']).toString().trim();
  };
  /** Writes the objects of a range into a file as a thin pack. */
  const pack = (range: string, file = 'blobs/0') => {
    const revisions = `${range.replaceAll(' ', '\n')}\n`;
    write(file, git(['pack-objects', '--quiet', '--revs', '--thin', '--stdout'], revisions));
    return file;
  };
  const long = Array.from({ length: 400 }, (_, at) => `line ${at} ${at * at}`).join('\n');

  beforeEach(() => {
    mkdirSync(join(root, 'repo'));
    git(['init', '--quiet', '-b', 'main']);
  });

  it('covers every object', async () => {
    const base = commit('src/deep/config.txt', long);
    const tip = commit('src/deep/config.txt', `${long}\ntoken ${github}\n`);
    // The first pack is based on the second.
    const file = pack(`${tip} ^${base}`, 'blobs/0');
    pack(base, 'blobs/1');
    const leaks = await scan();
    expect(leaks).toMatchObject([
      { kind: 'secret', name: 'GITHUB_TOKEN', file, line: 401, path: 'src/deep/config.txt' },
    ]);
    expect(leaks.map(describeLeak).join()).toMatch(
      /^blobs\/0 \(object [0-9a-f]{12}, src\/deep\/config\.txt\):401: secret GITHUB_TOKEN$/,
    );
  });

  it('covers commit messages and file names', async () => {
    commit(`${github}.txt`, 'x');
    git(['commit', '--quiet', '--allow-empty', '-m', `use ${value}`]);
    pack('HEAD');
    expect((await scan()).map(({ name, line }) => [name, line]).sort()).toEqual([
      ['DEPLOY_TOKEN', 6],
      ['GITHUB_TOKEN', 1],
    ]);
  });

  it('reports a thin pack as unreadable without its base objects', async () => {
    const base = commit('config.txt', long);
    const tip = commit('config.txt', `${long}\n${value}\n`);
    const file = pack(`${tip} ^${base}`);
    expect(await scan()).toEqual([{ kind: 'unreadable', name: 'pack', file }]);
    expect(await scan({ objects: [join(root, 'repo', '.git', 'objects')] })).toMatchObject([
      { kind: 'secret', name: 'DEPLOY_TOKEN', file, path: 'config.txt' },
    ]);
  });

  it('reports a damaged pack as unreadable', async () => {
    write('blobs/x', 'PACK and nothing else');
    expect(await scan()).toEqual([{ kind: 'unreadable', name: 'pack', file: 'blobs/x' }]);
  });
});

describe('the error for leaks', () => {
  it('lists the position of each leak and the fix', () => {
    const { code, message, hint } = leakError([
      { kind: 'secret', name: 'DEPLOY_TOKEN', file: 'sessions/a.jsonl', line: 3 },
      { kind: 'path', name: 'home', file: 'a.snap', line: 1 },
      ...Array.from({ length: 20 }, () => ({ kind: 'unreadable' as const, name: 'pack', file: 'blobs/x' })),
    ]);
    expect(code).toBe('SECRET_LEAKED');
    expect(
      `${message.split('\n').slice(0, 4).join('\n')}\n${message.split('\n').at(-1)}\n${hint}`,
    ).toMatchInlineSnapshot(`
      "the recording contains secrets or local paths:
        sessions/a.jsonl:3: secret DEPLOY_TOKEN
        a.snap:1: local path (home)
        blobs/x: git pack that cannot be searched, because the objects it is based on are missing
        and 2 more
      keep the secret out of the files and the output of agents and scripts, and try again; if these files have been shared, revoke the secret"
    `);
  });
});
