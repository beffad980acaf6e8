import { chmodSync, mkdirSync, symlinkSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { describe, expect, test } from 'vitest';
import { nativeCodex } from '../driver/program.ts';
import { agentLab, agentOf, eventsIn, policyOf, requestOf, signalsOf } from '../test-support.ts';
import { codexLaunch, codexProtocol } from './exec.ts';

const lab = agentLab();
const codex = agentOf({ kind: 'codex' });

describe('the command line', () => {
  const begin = ['codex', 'exec', '--json', '--skip-git-repo-check', '-s'];

  test.each([
    ['defaults', {}, [...begin, 'workspace-write', 'Do it.']],
    ['read-only', { permissions: policyOf({ preset: 'read-only' }) }, [...begin, 'read-only', 'Do it.']],
    [
      'full permissions',
      { permissions: policyOf({ preset: 'full' }) },
      [...begin, 'danger-full-access', 'Do it.'],
    ],
    [
      'a model and additional arguments',
      { agent: { ...codex, model: 'gpt-5.5', args: ['-c', 'x=1'] } },
      [...begin, 'workspace-write', '-m', 'gpt-5.5', '-c', 'x=1', 'Do it.'],
    ],
    [
      'a resumed session',
      { resume: { sessionId: 'old' } },
      [...begin, 'workspace-write', 'resume', 'old', 'Do it.'],
    ],
    [
      'a schema',
      { outputSchema: { type: 'object' } },
      [...begin, 'workspace-write', '--output-schema', '/tmp/x/schema.json', 'Do it.'],
    ],
    ['a prompt that looks like an option', { prompt: '-h' }, [...begin, 'workspace-write', '--', '-h']],
  ])('with %s', (_what, given, argv) => {
    const launch = codexLaunch(requestOf({ agent: codex, ...given }), '/tmp/x');
    expect(launch).toMatchObject({ argv, stdin: 'ignore' });
  });

  test('passes a prompt that is too long for an argument on standard input', () => {
    const prompt = 'x'.repeat(200_000);
    const launch = codexLaunch(requestOf({ agent: codex, prompt }), '/tmp/x');
    expect(launch.stdin).toEqual({ text: prompt });
    expect(launch.argv.at(-1)).toBe('-');
  });

  test('refuses to fork a session', () => {
    const request = requestOf({ agent: codex, resume: { sessionId: 'old', fork: true } });
    expect(() => codexLaunch(request, '/tmp/x')).toThrow('cannot fork a session');
  });
});

describe('the event stream', () => {
  const completed = {
    type: 'turn.completed',
    usage: { input_tokens: 300, cached_input_tokens: 100, output_tokens: 30 },
  };

  test('reports only the new usage of a resumed thread', () => {
    const usage = { inputTokens: 200, cachedTokens: 50, outputTokens: 20, costUsd: null };
    const request = requestOf({ resume: { sessionId: 'old', usage } });
    expect(eventsIn(signalsOf(codexProtocol, [completed], { request }))).toEqual([
      { type: 'usage', inputTokens: 100, cachedTokens: 50, outputTokens: 10, costUsd: null },
    ]);
  });

  test('reports a failed command as a failed tool', () => {
    const item = {
      id: 'item_0',
      type: 'command_execution',
      command: 'false',
      exit_code: 1,
      aggregated_output: 'no',
    };
    expect(eventsIn(signalsOf(codexProtocol, [{ type: 'item.completed', item }]))).toEqual([
      { type: 'tool-start', id: 'item_0', name: 'Bash', input: { command: 'false' } },
      { type: 'tool-end', id: 'item_0', ok: false, output: 'no' },
    ]);
  });

  test('does not end with an error that is only a warning', () => {
    const signals = signalsOf(codexProtocol, [{ type: 'error', message: 'Reconnecting... 1/5' }, completed]);
    expect(eventsIn(signals)).toContainEqual({ type: 'retry', attempt: 1, reason: 'Reconnecting... 1/5' });
    expect(signals.at(-1)).toMatchObject({ verdict: { kind: 'ok' } });
  });

  test.each([
    ['stream disconnected', { kind: 'failed', error: { code: 'AGENT_UNAVAILABLE' } }],
    [
      "You've hit your usage limit. Try again in 2 hours 5 minutes.",
      { kind: 'limit', resetsAt: '2026-01-01T02:05:00.000Z' },
    ],
    ['unexpected status 401 Unauthorized', { kind: 'failed', error: { code: 'AGENT_LOGIN' } }],
  ])('turns "%s" into a verdict', (message, verdict) => {
    expect(signalsOf(codexProtocol, [{ type: 'turn.failed', error: { message } }])).toMatchObject([
      { verdict },
    ]);
  });
});

test('a session reports its thread, events and result', async () => {
  const source = `
    for (const line of [
      { type: 'thread.started', thread_id: 't1' },
      { type: 'item.completed', item: { id: 'item_0', type: 'agent_message', text: process.argv.at(-1) } },
      { type: 'turn.completed', usage: { input_tokens: 1, output_tokens: 2 } },
    ]) console.log(JSON.stringify(line));`;
  const agent = agentOf({ kind: 'codex', command: lab.program(source) });
  const { result } = await lab.run({ agent });
  expect(result).toMatchObject({ kind: 'ok', text: 'Do it.', sessionId: 't1', usage: { outputTokens: 2 } });
});

test('a limit ends the session without asking the host, because the process cannot continue', async () => {
  const message = 'exceeded retry limit, last status: 429 Too Many Requests';
  const source = `console.log(JSON.stringify({ type: 'turn.failed', error: { message: ${JSON.stringify(message)} } }));`;
  const agent = agentOf({ kind: 'codex', command: lab.program(source) });
  const { result } = await lab.run({ agent, onLimit: 'ask' });
  expect(result).toMatchObject({ kind: 'limit', error: { message } });
});

describe('the native program behind the wrapper', () => {
  const platform = `codex-${process.platform}-${process.arch}`;
  const wrapper = () => place('node_modules/@openai/codex/bin/codex.js');

  function place(path: string): string {
    const file = join(lab.folder, path);
    mkdirSync(dirname(file), { recursive: true });
    writeFileSync(file, '');
    chmodSync(file, 0o755);
    return file;
  }

  test.each([
    `node_modules/@openai/${platform}/vendor/some/codex/codex`,
    `node_modules/@openai/codex/node_modules/@openai/${platform}/bin/codex`,
    'node_modules/@openai/codex/vendor/here/codex/codex',
  ])('is found at %s', path => {
    const native = place(path);
    const link = join(lab.folder, 'codex');
    symlinkSync(wrapper(), link);
    expect(nativeCodex(link)).toBe(native);
  });

  test('is never one for another platform', () => {
    place('node_modules/@openai/codex/vendor/aarch64-pc-windows-msvc/codex/codex');
    place('node_modules/@openai/codex/vendor/x86_64-pc-windows-msvc/codex/codex');
    expect(nativeCodex(wrapper())).toBeUndefined();
  });

  test('is not searched for if there is no wrapper', () => {
    expect(nativeCodex(place('bin/codex'))).toBeUndefined();
    expect(nativeCodex('/no/such/file')).toBeUndefined();
  });
});
