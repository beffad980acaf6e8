import { describe, expect, test } from 'vitest';
import type { ProtocolContext, Signal } from '../driver/protocol.ts';
import { addUsage, noUsage, type Usage } from '../session.ts';
import { eventsIn, policyOf, recordedStreams, requestOf, signalsOf } from '../test-support.ts';
import { acpProtocol } from './acp.ts';

const denyCommands: ProtocolContext['rule'] = tool => ({
  kind: 'decided',
  decision: tool === 'Bash' ? { kind: 'deny', message: 'Bash is not allowed.' } : { kind: 'allow' },
});

/** Feeds a recorded stream to the protocol and returns its signals. */
function play(name: string, context: Partial<ProtocolContext> = {}) {
  const stream = recordedStreams().find(recorded => recorded.name === name);
  return signalsOf(acpProtocol, stream?.lines ?? [], context);
}

describe('copilot', () => {
  test.each([
    ['the server fails', 'acp-copilot-server-error', 'AGENT_UNAVAILABLE', '500 Internal server error'],
    ['the connection is cut', 'acp-copilot-connection', 'AGENT_UNAVAILABLE', 'error sending request'],
    ['its key is rejected', 'acp-copilot-login', 'AGENT_LOGIN', 'HTTP 401'],
  ])('fails if %s, although it reports an ordinary end', (_, name, code, message) => {
    const error = { code, message: expect.stringContaining(message) };
    expect(play(name).at(-1)).toMatchObject({ verdict: { kind: 'failed', error } });
  });
});

describe('the usage', () => {
  const usageIn = (name: string) =>
    eventsIn(play(name)).flatMap(event => (event.type === 'usage' ? event : []));
  const tokens = (usage: Usage) => usage.inputTokens + usage.outputTokens;

  test.each([
    ['acp-claude-two-requests', 226, 0.001828],
    ['acp-codex', 230, null],
    ['acp-copilot-denied', 339, null],
    ['acp-qwen-denied', 708, null],
  ])('of %s is reported during the turn, and is exact at its end', (name, total, costUsd) => {
    const events = usageIn(name);
    const sum = events.reduce(addUsage, noUsage);
    expect({ tokens: tokens(sum), costUsd: sum.costUsd }).toEqual({ tokens: total, costUsd });
    expect(events.length).toBeGreaterThan(1);
  });

  test('of an agent that reports only the size of its context adds up over its requests', () => {
    const beforeTheEnd = usageIn('acp-claude-two-requests')
      .map(tokens)
      .filter(count => count > 0);
    expect(beforeTheEnd).toEqual([103, 9, 105, 9]);
  });
});

test('a size of the context that is repeated after a tool does not count as another request', () => {
  const update = (given: object) => ({ method: 'session/update', params: { update: given } });
  const size = update({ sessionUpdate: 'usage_update', used: 110 });
  const tool = update({ sessionUpdate: 'tool_call_update', toolCallId: 't', status: 'completed' });
  const lines = [
    { id: 1, result: { protocolVersion: 1 } },
    { id: 2, result: { sessionId: 's' } },
    size,
    tool,
    size,
  ];
  const signals = signalsOf(
    acpProtocol,
    lines.map(line => JSON.stringify(line)),
  );
  expect(eventsIn(signals).filter(event => event.type === 'usage')).toMatchObject([{ inputTokens: 110 }]);
});

describe('the permissions', () => {
  const readOnly = requestOf({ permissions: policyOf({ preset: 'read-only' }) });
  const sent = (signals: readonly Signal[]) =>
    signals.flatMap(signal => (signal.kind === 'send' ? (signal.message['method'] ?? []) : []));

  test('of codex are enforced by its mode, which is set before the prompt', () => {
    const signals = play('acp-codex-read-only', { request: readOnly });
    expect(sent(signals)).toEqual(['session/new', 'session/set_mode', 'session/prompt']);
    expect(signals).toContainEqual(
      expect.objectContaining({
        message: expect.objectContaining({ params: expect.objectContaining({ modeId: 'read-only' }) }),
      }),
    );
  });

  test('fail the turn of an agent that ignored them', () => {
    const deny: ProtocolContext['rule'] = () => ({
      kind: 'decided',
      decision: { kind: 'deny', message: 'Edit is not allowed.' },
    });
    const signals = play('acp-opencode-unasked', { rule: deny });
    expect(eventsIn(signals)).toContainEqual(
      expect.objectContaining({
        type: 'permission',
        decision: { kind: 'deny', message: 'Edit was used without asking. Edit is not allowed.' },
      }),
    );
    expect(signals.at(-1)).toMatchObject({ verdict: { kind: 'failed' } });
  });
});

describe('qwen', () => {
  const request = requestOf({ resume: { sessionId: 'old' } });

  test('resumes a session by loading it if it lacks the method that it advertises', () => {
    expect(play('acp-qwen-resume', { request })).toMatchObject([
      { message: { method: 'session/resume' } },
      { message: { method: 'session/load', params: { sessionId: 'old' } } },
    ]);
  });

  test('names a tool that failed', () => {
    expect(eventsIn(play('acp-qwen-load', { request }))).toContainEqual(
      expect.objectContaining({ type: 'tool-start', name: 'write_file' }),
    );
  });
});

describe.each(['acp-copilot-denied', 'acp-opencode-denied'])('%s', name => {
  test('fails if a denial ended the turn before the model could answer', () => {
    expect(play(name, { rule: denyCommands }).at(-1)).toMatchObject({
      verdict: { kind: 'failed', error: { message: 'the agent stopped after the denial' } },
    });
  });
});
