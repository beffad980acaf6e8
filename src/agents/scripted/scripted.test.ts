import { execFileSync } from 'node:child_process';
import { existsSync, mkdirSync, readFileSync, symlinkSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, test } from 'vitest';
import type { Script } from '../agent.ts';
import { agentLab, agentOf, policyOf, resultOf } from '../test-support.ts';

const lab = agentLab();
const agentWith = (script: Script) => agentOf({ kind: 'scripted', script });
const run = (...script: Script) => lab.run({ agent: agentWith(script) });
const path = (name: string) => join(lab.workspace(), name);
const read = (name: string) => readFileSync(path(name), 'utf8');
const git = (...args: string[]) => execFileSync('git', args, { cwd: lab.workspace(), encoding: 'utf8' });

describe('a script', () => {
  test('changes real files and makes real commits', async () => {
    git('init', '-q');
    writeFileSync(path('old.txt'), 'to go');
    const { result, events } = await run(
      { think: 'A plan.' },
      { write: { path: 'src/a.txt', content: 'one\n' } },
      { append: { path: 'src/a.txt', content: 'two\n' } },
      { replace: { path: 'src/a.txt', from: 'one', to: '$& 1' } },
      { delete: 'old.txt' },
      { run: 'echo made > made.txt' },
      { commit: 'Add a.txt' },
      { say: 'Done.' },
    );
    expect(result).toMatchObject({
      kind: 'ok',
      text: 'Done.',
      sessionId: 'scripted',
      usage: { inputTokens: 0, costUsd: 0 },
    });
    expect(read('src/a.txt')).toBe('$& 1\ntwo\n');
    expect(git('log', '--format=%s %an')).toBe('Add a.txt Scripted agent\n');
    expect(git('ls-files')).toBe('made.txt\nsrc/a.txt\n');
    expect(events.map(event => event.type)).toEqual([
      'started',
      'thought',
      ...Array.from({ length: 6 }, () => ['tool-start', 'tool-end']).flat(),
      'text',
      'usage',
      'done',
    ]);
  });

  test('ends with a result, which is validated like the result of any agent', async () => {
    const outputSchema = { type: 'object', properties: { n: { type: 'number' } }, required: ['n'] };
    const good = agentWith([{ result: { text: 'Fine.', output: { n: 1 } } }, { fail: 'not reached' }]);
    const bad = agentWith([{ result: { output: { n: 'one' } } }]);
    expect((await lab.run({ agent: good, outputSchema })).result).toMatchObject({
      kind: 'ok',
      text: 'Fine.',
      structured: { n: 1 },
    });
    expect((await lab.run({ agent: bad, outputSchema })).result).toMatchObject({
      error: { code: 'OUTPUT_INVALID' },
    });
  });

  test.each([
    ['has a `fail` step', { fail: 'out of ideas' }, /out of ideas/],
    ['runs a failing command', { run: 'echo why >&2; exit 3' }, /code 3\nwhy/],
    ['replaces a missing text', { replace: { path: 'a', from: 'x', to: 'y' } }, /does not contain "x"/],
    ['commits nothing', { commit: 'empty' }, /code 1/],
  ] as const)('fails if it %s', async (_what, step, message) => {
    git('init', '-q');
    writeFileSync(path('a'), '');
    git('add', '-A');
    git('-c', 'user.name=a', '-c', 'user.email=a@b.invalid', 'commit', '-qm', 'first');
    const { result } = await run(step);
    expect(result).toMatchObject({
      kind: 'failed',
      error: {
        code: 'AGENT_FAILED',
        message: expect.stringMatching(message),
        hint: expect.stringMatching(/./),
      },
    });
  });

  test.each(['../out.txt', '/tmp/reprise-out.txt', 'link/out.txt', 'dangling', '.', 'a/../../out.txt'])(
    'does not leave its workspace: %s',
    async target => {
      mkdirSync(join(lab.folder, 'elsewhere'));
      lab.workspace();
      symlinkSync('../elsewhere', path('link'));
      symlinkSync('../elsewhere/new.txt', path('dangling'));
      const { result } = await run({ write: { path: target, content: 'x' } });
      expect(result).toMatchObject({ kind: 'failed', error: { code: 'PERMISSION_DENIED' } });
      expect(existsSync(join(lab.folder, 'elsewhere/new.txt'))).toBe(false);
      expect(existsSync(join(lab.folder, 'elsewhere/out.txt'))).toBe(false);
    },
  );

  test('can be a file in the workspace', async () => {
    writeFileSync(path('script.yaml'), '- say: from a file\n');
    const { result } = await lab.run({ agent: agentOf({ kind: 'scripted', scriptFile: 'script.yaml' }) });
    expect(result).toMatchObject({ kind: 'ok', text: 'from a file' });
  });

  test('reports why a file cannot be used', async () => {
    writeFileSync(path('script.yaml'), '- shout: hello\n');
    const { result } = await lab.run({ agent: agentOf({ kind: 'scripted', scriptFile: 'script.yaml' }) });
    expect(result).toMatchObject({ error: { message: expect.stringMatching(/script\.yaml.*one of say/s) } });
  });

  test('asks for permission, which the policy allows or denies', async () => {
    const ask = { ask: { tool: 'Bash', input: { command: 'npm test' } } };
    const agent = agentWith([ask, { say: 'Allowed.' }]);
    const denied = await lab.run({ agent });
    expect(denied.result).toMatchObject({
      kind: 'failed',
      error: { code: 'PERMISSION_DENIED', hint: expect.stringContaining('allow: ["Bash(npm test)"]') },
      denials: [{ tool: 'Bash' }],
    });
    const allowed = await lab.run({ agent, permissions: policyOf({ allow: ['Bash(npm test)'] }) });
    expect(allowed.result).toMatchObject({ kind: 'ok', text: 'Allowed.', denials: [] });
  });

  test('asks the host about permissions and limits, then continues', async () => {
    const limit = { limit: { resets_at: '2026-01-01T00:00:00Z' } };
    const script = [{ ask: { tool: 'Bash', input: { command: 'ls' } } }, limit, { say: 'Went on.' }];
    const permissions = policyOf({ otherwise: 'ask' });
    const { session } = lab.open({ agent: agentWith(script), permissions, onLimit: 'ask' });
    expect(await session.next()).toMatchObject({ question: { kind: 'permission', tool: 'Bash' } });
    expect(await session.next({ kind: 'allow' })).toMatchObject({
      question: { kind: 'limit', resetsAt: '2026-01-01T00:00:00Z' },
    });
    expect(resultOf(await session.next({ kind: 'continue' }))).toMatchObject({
      kind: 'ok',
      text: 'Went on.',
    });
    await session.close();
  });

  test('ends at a limit if the host is not asked', async () => {
    const { result } = await run({ limit: { resets_at: '2026-01-01T00:00:00Z', reason: 'used up' } });
    expect(result).toMatchObject({
      kind: 'limit',
      resetsAt: '2026-01-01T00:00:00Z',
      error: { message: 'used up' },
    });
  });
});

describe('cancelling', () => {
  test.each([
    ['a sleep', { sleep: 1e9 }],
    ['a command', { run: 'setsid sleep 1000 & sleep 1000' }],
    ['a question', { ask: { tool: 'Bash' } }],
  ] as const)('ends %s', async (_what, step) => {
    const permissions = policyOf({ otherwise: 'ask' });
    const agent = agentWith([{ say: 'here' }, step, { write: { path: 'late.txt', content: '' } }]);
    const { session, waitFor } = lab.open({ agent, permissions });
    void session.next();
    await waitFor('text');
    await session.cancel();
    expect(resultOf(await session.next())).toMatchObject({ kind: 'cancelled' });
    await session.close();
    expect(existsSync(path('late.txt'))).toBe(false);
  });

  test('before the start prevents every step', async () => {
    const agent = agentWith([{ write: { path: 'late.txt', content: '' } }]);
    const { session } = lab.open({ agent }, { signal: AbortSignal.abort() });
    expect(resultOf(await session.next())).toMatchObject({ kind: 'cancelled' });
    await session.close();
    expect(existsSync(path('late.txt'))).toBe(false);
  });
});

describe('permissions of a script', () => {
  const denied = { kind: 'failed', error: { code: 'PERMISSION_DENIED' } };
  const tried = async (policy: Parameters<typeof policyOf>[0], ...script: Script) =>
    (await lab.run({ agent: agentWith(script), permissions: policyOf(policy) })).result;

  test.each<[string, Script[number]]>([
    ['write', { write: { path: 'a.txt', content: 'x' } }],
    ['append', { append: { path: 'a.txt', content: 'x' } }],
    ['run', { run: 'touch a.txt' }],
  ])('are applied to %s if they are written', async (_, step) => {
    expect(await tried({ preset: 'read-only', isWritten: true }, step)).toMatchObject(denied);
    expect(existsSync(path('a.txt'))).toBe(false);
    expect(await tried({ preset: 'read-only' }, step)).toMatchObject({ kind: 'ok' });
  });

  test('allow what a rule names, and deny what a rule denies', async () => {
    const policy = { isWritten: true, allow: ['Bash(touch *)'], deny: ['Write'] };
    expect(await tried(policy, { run: 'touch a.txt' })).toMatchObject({ kind: 'ok' });
    expect(await tried(policy, { write: { path: 'a.txt', content: 'x' } })).toMatchObject(denied);
  });

  test('keep protected files even if none are written, except with full', async () => {
    const step = { write: { path: 'sub/reprise.yaml', content: 'x' } };
    expect(await tried({}, step)).toMatchObject(denied);
    expect(await tried({}, { delete: '.mcp.json' })).toMatchObject(denied);
    expect(await tried({ preset: 'full' }, step)).toMatchObject({ kind: 'ok' });
  });
});
