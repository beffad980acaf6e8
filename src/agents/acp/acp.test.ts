import { existsSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, test } from 'vitest';
import { applyPolicy, type PermissionDecision } from '../permissions/permissions.ts';
import { agentLab, agentOf, eventsIn, policyOf, requestOf, resultOf, signalsOf } from '../test-support.ts';
import { acpLaunch, acpProtocol } from './acp.ts';

const lab = agentLab();
const program = join(import.meta.dirname, '../../../test/support/acp-agent/program.mjs');
const agent = agentOf({ kind: 'acp', command: [process.execPath, program] });
const file = () => join(lab.workspace(), 'hello.txt');

describe('a session', () => {
  test('returns the answer', async () => {
    const { result, events } = await lab.run({ agent, prompt: '[[hello]]' });
    expect(result).toMatchObject({ kind: 'ok', text: 'Hello.', sessionId: 'session-1' });
    expect(events.map(event => event.type)).toEqual(['started', 'text', 'done']);
  });

  test('edits a file in its workspace', async () => {
    const { result, events } = await lab.run({ agent, prompt: '[[write]]' });
    expect(result).toMatchObject({ kind: 'ok', text: 'Done.' });
    expect(readFileSync(file(), 'utf8')).toBe('hello\n');
    expect(events.map(event => event.type)).toEqual([
      'started',
      'text',
      'tool-start',
      'permission',
      'tool-end',
      'text',
      'done',
    ]);
  });

  test('does not edit a file with `read-only`', async () => {
    const permissions = policyOf({ preset: 'read-only' });
    const { result } = await lab.run({ agent, prompt: '[[write]]', permissions });
    expect(result).toMatchObject({
      kind: 'ok',
      text: 'Not allowed.',
      denials: [{ tool: 'Edit', lineToAdd: 'allow: ["Edit(/hello.txt)"]' }],
    });
    expect(existsSync(file())).toBe(false);
  });

  test('asks the host for permission', async () => {
    const permissions = policyOf({ preset: 'read-only', otherwise: 'ask' });
    const { session } = lab.open({ agent, prompt: '[[write]]', permissions });
    expect(await session.next()).toMatchObject({ kind: 'question', question: { tool: 'Edit' } });
    expect(resultOf(await session.next({ kind: 'allow' }))).toMatchObject({ kind: 'ok', text: 'Done.' });
    await session.close();
    expect(existsSync(file())).toBe(true);
  });

  test('resumes a session without replaying it', async () => {
    const { result, events } = await lab.run({ agent, prompt: '[[hello]]', resume: { sessionId: 'old' } });
    expect(result).toMatchObject({ kind: 'ok', text: 'Hello.', sessionId: 'old' });
    expect(events.filter(event => event.type === 'text')).toHaveLength(1);
  });

  test('refuses to fork a session if the agent does not support it', async () => {
    const { result } = await lab.run({ agent, resume: { sessionId: 'old', fork: true } });
    expect(result).toMatchObject({ kind: 'failed', error: { code: 'AGENT_FAILED' } });
  });

  test('returns structured output from a code fence', async () => {
    const outputSchema = { type: 'object', properties: { files: { type: 'array' } }, required: ['files'] };
    const { result } = await lab.run({ agent, prompt: '[[json]]', outputSchema });
    expect(result).toMatchObject({
      kind: 'ok',
      structured: { files: ['a.txt'] },
      usage: { inputTokens: 5, outputTokens: 7 },
    });
  });

  test.each([
    [
      '[[fail]]',
      { kind: 'failed', error: { code: 'AGENT_FAILED', message: 'Internal error: the script says so' } },
    ],
    ['[[refuse]]', { kind: 'failed', error: { code: 'AGENT_FAILED', message: 'the model refused' } }],
    ['[[crash]]', { kind: 'failed', error: { code: 'AGENT_FAILED', exitCode: 3 } }],
    ['[[limit]]', { kind: 'limit', resetsAt: '2026-01-01T00:01:30.000Z' }],
    ['[[read-file]]', { kind: 'ok', text: 'fs/read_text_file is not offered: use your own tools' }],
  ])('ends as the agent reports: %s', async (prompt, expected) => {
    const now = () => Date.parse('2026-01-01T00:00:00Z');
    const { result } = await lab.run({ agent, prompt }, { now });
    expect(result).toMatchObject(expected);
  });

  test('is cancelled through the protocol', async () => {
    const { session, waitFor } = lab.open({ agent, prompt: '[[hang]]' }, { graceMs: 60_000 });
    const turn = session.next();
    await waitFor('started');
    await session.cancel();
    expect(resultOf(await turn)).toMatchObject({ kind: 'cancelled' });
    await session.close();
  });
});

describe('the protocol', () => {
  const opened = [
    { id: 1, result: { protocolVersion: 1, agentCapabilities: {} } },
    { id: 2, result: { sessionId: 's' } },
  ];
  const update = (given: object) => ({ method: 'session/update', params: { sessionId: 's', update: given } });
  const text = (given: string) => update({ sessionUpdate: 'agent_message_chunk', content: { text: given } });
  const verdictOf = (...lines: readonly object[]) =>
    signalsOf(
      acpProtocol,
      [...opened, ...lines].map(line => JSON.stringify(line)),
    ).at(-1);

  test('detects a failure behind an ordinary answer', () => {
    const status = { codex: { threadStatus: { type: 'systemError' } } };
    const error = update({ sessionUpdate: 'session_info_update', _meta: status });
    expect(verdictOf(text('status 500'), error, { id: 3, result: { stopReason: 'end_turn' } })).toMatchObject(
      {
        verdict: { kind: 'failed', error: { code: 'AGENT_UNAVAILABLE', message: 'status 500' } },
      },
    );
  });

  test.each([
    ['max_tokens', 'AGENT_FAILED'],
    ['max_turn_requests', 'AGENT_FAILED'],
    ['whatever', 'AGENT_PROTOCOL'],
  ])('treats the stop reason %s as a failure', (stopReason, code) => {
    expect(verdictOf({ id: 3, result: { stopReason } })).toMatchObject({ verdict: { error: { code } } });
  });

  describe('if the agent demands authentication before a session', () => {
    const demand = { id: 2, error: { code: -32000, message: 'Authentication required' } };
    const offering = (...authMethods: readonly object[]) => ({
      id: 1,
      result: { protocolVersion: 1, agentCapabilities: {}, authMethods },
    });

    test('authenticates with a key, once', () => {
      const methods = offering({ id: 'oauth', name: 'Browser' }, { id: 'openai-api-key', name: 'Key' });
      const lines = [methods, demand, { id: 4, result: {} }, demand].map(line => JSON.stringify(line));
      expect(signalsOf(acpProtocol, lines)).toMatchObject([
        {
          message: {
            method: 'session/new',
            params: {
              _meta: {
                claudeCode: { options: { disallowedTools: expect.arrayContaining(['EnterWorktree']) } },
              },
            },
          },
        },
        { message: { method: 'authenticate', params: { methodId: 'openai-api-key' } } },
        { message: { method: 'session/new' } },
        { verdict: { error: { code: 'AGENT_LOGIN' } } },
      ]);
    });

    test('fails if only a person could do it', () => {
      const lines = [offering({ id: 'oauth', name: 'Browser' }), demand].map(line => JSON.stringify(line));
      expect(signalsOf(acpProtocol, lines).at(-1)).toMatchObject({
        verdict: { error: { code: 'AGENT_LOGIN' } },
      });
    });
  });

  test.each([
    ['asks', 'edit', [], true],
    ['asks', 'full', ['Bash(rm *)'], true],
    ['does not ask', 'full', [], false],
  ] as const)('starts OpenCode so that it %s with `%s` and the denied rules %j', (_, preset, deny, asks) => {
    const { env } = acpLaunch(requestOf({ agent, permissions: policyOf({ preset, deny }) }));
    expect(env?.['OPENCODE_PERMISSION'] !== undefined).toBe(asks);
  });

  test('refuses other protocol versions', () => {
    expect(signalsOf(acpProtocol, [{ id: 1, result: { protocolVersion: 2 } }])).toMatchObject([
      { verdict: { kind: 'failed', error: { code: 'AGENT_PROTOCOL' } } },
    ]);
  });

  test('offers neither files nor terminals', () => {
    const { signals } = acpProtocol({
      request: requestOf(),
      rule: () => ({ kind: 'decided', decision: { kind: 'allow' } }),
      now: () => 0,
    }).open();
    expect(signals).toMatchObject([
      {
        message: {
          method: 'initialize',
          params: {
            protocolVersion: 1,
            clientCapabilities: { fs: { readTextFile: false, writeTextFile: false }, terminal: false },
          },
        },
      },
    ]);
  });

  test('accepts names of Object.prototype properties as ids', () => {
    const lines = ['constructor', '__proto__', 'toString'].flatMap(toolCallId => [
      update({ sessionUpdate: 'tool_call', toolCallId, kind: 'execute', title: 'ls' }),
      update({ sessionUpdate: 'tool_call_update', toolCallId, status: 'completed' }),
    ]);
    const reported = eventsIn(
      signalsOf(
        acpProtocol,
        [...opened, ...lines].map(line => JSON.stringify(line)),
      ),
    );
    expect(reported.filter(event => event.type === 'tool-end')).toHaveLength(3);
  });

  test.each([
    [
      { title: '/data/shared', kind: 'other', locations: [{ path: '/data/shared' }] },
      'Edit',
      'Edit(//data/shared)',
    ],
    [{ title: 'Search the web: $x' }, 'Search_the_web_x', 'Search_the_web_x'],
    [{ title: '$!' }, 'tool', 'tool'],
    [{ name: 'my tool', kind: 'other' }, 'my_tool', 'my_tool'],
  ])('suggests a rule that allows the tool of %j', (toolCall, tool, rule) => {
    const wishes: PermissionDecision[] = [];
    const ask = (allow: readonly string[]) => {
      const request = {
        id: 0,
        method: 'session/request_permission',
        params: { toolCall: { toolCallId: 't', ...toolCall }, options: [] },
      };
      signalsOf(acpProtocol, [...opened.map(line => JSON.stringify(line)), request], {
        rule: (asked, input) => {
          expect(asked).toBe(tool);
          const ruling = applyPolicy(requestOf({ permissions: policyOf({ allow }), cwd: '/tmp' }), {
            inheritEnv: process.env,
          })(asked, input);
          if (ruling.kind === 'decided') wishes.push(ruling.decision);
          return ruling;
        },
      });
    };
    ask([]);
    ask([rule]);
    const lineToAdd = `allow: ["${rule}"]`;
    expect(wishes).toEqual([{ kind: 'deny', message: expect.any(String), lineToAdd }, { kind: 'allow' }]);
  });

  test('denies a change outside the workspace even if it claims to be harmless', () => {
    const wishes: unknown[] = [];
    const request = {
      id: 0,
      method: 'session/request_permission',
      params: {
        toolCall: { toolCallId: 't', name: 'Read', kind: 'edit', locations: [{ path: '/etc/hosts' }] },
        options: [],
      },
    };
    signalsOf(acpProtocol, [...opened.map(line => JSON.stringify(line)), request], {
      rule: (tool, input) => {
        wishes.push({ tool, input });
        return { kind: 'decided', decision: { kind: 'deny', message: 'no' } };
      },
    });
    expect(wishes).toEqual([{ tool: 'Edit', input: { paths: ['/etc/hosts'] } }]);
  });
});
