import { describe, expect, test } from 'vitest';
import type { JsonObject } from '../../core/json.ts';
import type { ProtocolContext } from '../driver/protocol.ts';
import { agentLab, agentOf, eventsIn, policyOf, requestOf, resultOf, signalsOf } from '../test-support.ts';
import { appServerLaunch, appServerProtocol } from './app-server.ts';

const lab = agentLab();

test('the command line starts the app server with the arguments of the agent', () => {
  const agent = agentOf({ kind: 'codex', args: ['-c', 'x=1'] });
  expect(appServerLaunch(requestOf({ agent }))).toEqual({
    argv: ['codex', 'app-server', '-c', 'x=1'],
    stdin: 'open',
  });
});

test.each([
  [
    ['--add-dir', '/a', '--add-dir=/b'],
    ['-c', 'sandbox_workspace_write.writable_roots=["/a", "/b"]'],
  ],
  [
    ['-m', 'gpt-5.5'],
    ['-c', 'model="gpt-5.5"'],
  ],
  [
    ['--enable', 'x'],
    ['--enable', 'x'],
  ],
])('the arguments %j of `codex exec` are translated for the app server', (args, expected) => {
  const { argv } = appServerLaunch(requestOf({ agent: agentOf({ kind: 'codex', args }) }));
  expect(argv).toEqual(['codex', 'app-server', ...expected]);
});

test('an argument that the app server does not have is refused with the reason', () => {
  const agent = agentOf({ kind: 'codex', args: ['--profile', 'fast'] });
  expect(() => appServerLaunch(requestOf({ agent }))).toThrow(
    expect.objectContaining({
      code: 'CONFIG_INVALID',
      message: expect.stringContaining('`--profile` cannot be used with `allow` or `deny`'),
    }),
  );
});

test('usage before a crash, which was never reported, is counted when the thread is resumed', () => {
  const usage = { inputTokens: 1000, outputTokens: 100, cachedTokens: 0, costUsd: null };
  const request = requestOf({ resume: { sessionId: 'old', usage } });
  const update = (turnId: string, inputTokens: number) => ({
    method: 'thread/tokenUsage/updated',
    params: { turnId, tokenUsage: { total: { inputTokens, outputTokens: 100 }, last: { inputTokens: 50 } } },
  });
  const lines = [
    update('old-turn', 1113),
    { id: 3, result: { turn: { id: 'new-turn' } } },
    update('new-turn', 1163),
  ];
  const reported = eventsIn(signalsOf(appServerProtocol, lines, { request }));
  expect(reported.map(event => (event.type === 'usage' ? event.inputTokens : undefined))).toEqual([113, 50]);
});

test.each([
  ['to leave the sandbox', { allow: ['Bash(npm test)'] }, 'on-request'],
  ['about untrusted commands if there are `deny` rules', { deny: ['Bash(rm *)'] }, 'untrusted'],
  ['about untrusted commands if there is a host to ask', { otherwise: 'ask' }, 'untrusted'],
] as const)('a thread starts in the sandbox of the preset and asks %s', (_, rules, approvalPolicy) => {
  const request = requestOf({ permissions: policyOf({ preset: 'read-only', ...rules }), cwd: '/work' });
  expect(signalsOf(appServerProtocol, [{ id: 1, result: {} }], { request })).toEqual([
    { kind: 'send', message: { method: 'initialized' } },
    {
      kind: 'send',
      message: {
        id: 2,
        method: 'thread/start',
        params: { cwd: '/work', approvalPolicy, sandbox: 'read-only' },
      },
    },
  ]);
});

test('the first update of a resumed thread counts only the last request', () => {
  const counts = (inputTokens: number) => ({ inputTokens, outputTokens: 1, cachedInputTokens: 0 });
  const update = (total: number, last: number) => ({
    method: 'thread/tokenUsage/updated',
    params: { tokenUsage: { total: counts(total), last: counts(last) } },
  });
  const reported = eventsIn(
    signalsOf(appServerProtocol, [update(1000, 100), update(1000, 100), update(1050, 50)]),
  );
  expect(reported.map(event => (event.type === 'usage' ? event.inputTokens : undefined))).toEqual([
    100, 0, 50,
  ]);
});

test('a resumed thread excludes its old turns, and the turn carries the schema', () => {
  const outputSchema = { type: 'object' };
  const request = requestOf({ resume: { sessionId: 'old' }, outputSchema });
  const lines = [
    { id: 1, result: {} },
    { id: 2, result: { thread: { id: 'old' } } },
  ];
  expect(signalsOf(appServerProtocol, lines, { request })).toMatchObject([
    {},
    { message: { method: 'thread/resume', params: { threadId: 'old', excludeTurns: true } } },
    { event: { type: 'started', sessionId: 'old' } },
    { message: { method: 'turn/start', params: { threadId: 'old', outputSchema } } },
  ]);
});

describe('a permission request', () => {
  const wishes: unknown[] = [];
  const rule: ProtocolContext['rule'] = (tool, input) => {
    wishes.push([tool, input]);
    return { kind: 'decided', decision: { kind: 'allow' } };
  };
  const wishOf = (params: JsonObject) => {
    wishes.length = 0;
    signalsOf(appServerProtocol, [{ id: 0, method: 'item/commandExecution/requestApproval', params }], {
      rule,
    });
    return wishes[0];
  };

  test('names the command without the shell around it', () => {
    expect(wishOf({ command: "/bin/bash -lc 'npm test'" })).toEqual(['Bash', { command: 'npm test' }]);
  });

  test('names the host that a command wants to reach', () => {
    const networkApprovalContext = { host: 'example.com', protocol: 'https' };
    expect(wishOf({ command: 'npm test', networkApprovalContext })).toEqual([
      'WebFetch',
      { url: 'https://example.com' },
    ]);
  });

  test('distinguishes input to a running command from the command', () => {
    expect(wishOf({ kind: 'writeStdin', command: 'npm test' })).toMatchObject(['WriteStdin', {}]);
  });
});

test('an error that codex retries is reported with its reason', () => {
  const error = { message: 'Reconnecting... 2/5', additionalDetails: 'high demand' };
  const line = { method: 'error', params: { error, willRetry: true } };
  expect(eventsIn(signalsOf(appServerProtocol, [line]))).toEqual([
    { type: 'retry', attempt: 2, reason: 'high demand' },
  ]);
});

test.each([
  ['unauthorized', { kind: 'failed', error: { code: 'AGENT_LOGIN' } }],
  ['usageLimitExceeded', { kind: 'limit' }],
  [{ responseTooManyFailedAttempts: { httpStatusCode: 429 } }, { kind: 'limit' }],
  [{ httpConnectionFailed: { httpStatusCode: null } }, { kind: 'failed', error: { code: 'AGENT_FAILED' } }],
  ['constructor', { kind: 'failed', error: { code: 'AGENT_FAILED' } }],
])('a turn that failed with %j has the right verdict', (codexErrorInfo, verdict) => {
  const turn = { status: 'failed', error: { message: 'no', codexErrorInfo } };
  expect(signalsOf(appServerProtocol, [{ method: 'turn/completed', params: { turn } }])).toMatchObject([
    { verdict },
  ]);
});

/** Asks about one command and one change, and reports both answers. */
const server = `
  import { createInterface } from 'node:readline';
  const print = message => console.log(JSON.stringify(message));
  const answers = [];
  createInterface({ input: process.stdin }).on('line', line => {
    const { id, method, result } = JSON.parse(line);
    if (method === 'initialize') print({ id, result: {} });
    if (method === 'thread/start') print({ id, result: { thread: { id: 't1' }, model: 'none' } });
    if (method === 'turn/interrupt') {
      print({ id, result: {} });
      print({ method: 'turn/completed', params: { turn: { id: 'u1', status: 'interrupted' } } });
    }
    if (method === 'turn/start') {
      print({ id, result: { turn: { id: 'u1' } } });
      const change = { type: 'fileChange', id: 'i2', changes: [{ path: '/etc/hosts', kind: { type: 'update' } }] };
      print({ method: 'item/started', params: { item: change } });
      print({ id: 0, method: 'item/commandExecution/requestApproval', params: { itemId: 'i1', command: 'npm test' } });
      print({ id: 'x', method: 'item/fileChange/requestApproval', params: { itemId: 'i2' } });
      print({ id: 7, method: 'item/tool/requestUserInput', params: {} });
    }
    if (result) answers.push(result.decision);
    if (answers.length === 2) {
      const item = { type: 'agentMessage', id: 'm', text: answers.join(' ') };
      print({ method: 'item/completed', params: { item } });
      print({ method: 'turn/completed', params: { turn: { id: 'u1', status: 'completed' } } });
    }
  });`;

test('a session with a budget uses the app server, which reports usage during a turn', async () => {
  const agent = agentOf({ kind: 'codex', command: lab.program(server) });
  const { result } = await lab.run({ agent, budget: { tokens: 1000 } });
  expect(result).toMatchObject({ kind: 'ok', sessionId: 't1' });
});

describe('a session', () => {
  const agent = () => agentOf({ kind: 'codex', command: lab.program(server) });

  test('decides permission requests by the policy', async () => {
    const permissions = policyOf({ allow: ['Bash(npm test)'] });
    const { result } = await lab.run({ agent: agent(), permissions });
    expect(result).toMatchObject({
      kind: 'ok',
      text: 'accept decline',
      sessionId: 't1',
      denials: [{ tool: 'Edit', lineToAdd: 'allow: ["Bash(npm test)", "Edit(//etc/hosts)"]' }],
    });
  });

  test('passes permission requests to the host if the policy says so', async () => {
    const permissions = policyOf({ otherwise: 'ask' });
    const { session } = lab.open({ agent: agent(), permissions });
    expect(await session.next()).toMatchObject({
      question: { tool: 'Bash', input: { command: 'npm test' } },
    });
    expect(await session.next({ kind: 'deny' })).toMatchObject({ question: { tool: 'Edit' } });
    expect(resultOf(await session.next({ kind: 'allow' }))).toMatchObject({ text: 'decline accept' });
    await session.close();
  });

  test('is interrupted through its protocol', async () => {
    const permissions = policyOf({ otherwise: 'ask' });
    const { session } = lab.open({ agent: agent(), permissions }, { graceMs: 60_000 });
    await session.next();
    await session.cancel();
    expect(resultOf(await session.next())).toMatchObject({ kind: 'cancelled' });
    await session.close();
  });
});
