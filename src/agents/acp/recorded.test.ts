import { describe, expect, test } from 'vitest';
import type { ProtocolContext } from '../driver/protocol.ts';
import { recordedStreams, signalsOf } from '../test-support.ts';
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
    ['the server fails', 'acp-copilot-server-error', 'AGENT_FAILED', '500 Internal server error'],
    ['the connection is cut', 'acp-copilot-connection', 'AGENT_FAILED', 'error sending request'],
    ['its key is rejected', 'acp-copilot-login', 'AGENT_LOGIN', 'HTTP 401'],
  ])('fails if %s, although it reports an ordinary end', (_, name, code, message) => {
    const error = { code, message: expect.stringContaining(message) };
    expect(play(name).at(-1)).toMatchObject({ verdict: { kind: 'failed', error } });
  });
});

describe.each(['acp-copilot-denied', 'acp-opencode-denied'])('%s', name => {
  test('fails if a denial ended the turn before the model could answer', () => {
    expect(play(name, { rule: denyCommands }).at(-1)).toMatchObject({
      verdict: { kind: 'failed', error: { message: 'the agent stopped after the denial' } },
    });
  });
});
