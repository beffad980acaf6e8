import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { LineSplitter } from '../process/output.ts';
import { acpProtocol } from './acp/acp.ts';
import { claudeProtocol } from './claude/claude.ts';
import { appServerProtocol } from './codex/app-server.ts';
import { codexProtocol } from './codex/exec.ts';
import type { ProtocolContext, Signal } from './driver/protocol.ts';
import { recordedStreams, signalsOf } from './test-support.ts';

const streams = recordedStreams();

/** Feeds a recorded stream to the protocol that it belongs to. */
function play(name: string, lines: readonly string[], context?: Partial<ProtocolContext>): readonly Signal[] {
  if (name.startsWith('acp')) return signalsOf(acpProtocol, lines, context);
  if (name.startsWith('codex-appserver')) return signalsOf(appServerProtocol, lines, context);
  if (name.startsWith('codex')) return signalsOf(codexProtocol, lines, context);
  return signalsOf(claudeProtocol, lines, context);
}

/** Describes a signal in one short line. */
function inShort(signal: Signal): string {
  switch (signal.kind) {
    case 'event': {
      const { event } = signal;
      switch (event.type) {
        case 'text':
        case 'thought':
          return `${event.type}: ${event.text}`;
        case 'tool-start':
          return `tool-start: ${event.name}`;
        case 'tool-end':
          return `tool-end: ${event.ok ? 'ok' : 'not ok'}`;
        case 'permission':
          return `permission: ${event.tool} ${event.decision?.kind ?? 'asked'}`;
        case 'usage':
          return `usage: ${event.inputTokens} in, ${event.outputTokens} out, $${event.costUsd?.toFixed(6) ?? '?'}`;
        case 'raw':
          return `raw: ${event.line.slice(0, 60)}`;
        case 'started':
        case 'retry':
        case 'limit':
        case 'note':
        case 'done':
          return event.type;
      }
      break;
    }
    case 'send':
      return `send: ${JSON.stringify(signal.message['method'] ?? signal.message['type'] ?? signal.message['result'])}`;
    case 'question':
    case 'withdraw':
      return signal.kind;
    case 'hold':
      return `hold for ${signal.silenceMs / 1000} s`;
    case 'verdict':
      return signal.verdict.kind === 'ok' ? `ok: ${signal.verdict.text}` : signal.verdict.kind;
  }
}

describe('a recorded stream', () => {
  test.each(streams)('gives the expected signals: $name', ({ name, lines }) => {
    expect(play(name, lines).map(inShort)).toMatchSnapshot();
  });

  test.each(streams)('gives the same signals however its bytes are split: $name', ({ name, lines }) => {
    const bytes = Buffer.from(`${lines.join('\n')}\n`);
    const whole = play(name, lines);
    const cuts = fc.array(fc.nat(bytes.length), { maxLength: 40 });
    fc.assert(
      fc.property(cuts, places => {
        expect(play(name, linesOf(bytes, places))).toEqual(whole);
      }),
      { numRuns: 20 },
    );
  });

  test.each(streams)('never throws if lines are truncated anywhere: $name', ({ name, lines }) => {
    const broken = fc.record({ line: fc.nat(lines.length - 1), at: fc.nat(2000), put: fc.string() });
    fc.assert(
      fc.property(fc.array(broken, { minLength: 1, maxLength: 5 }), changes => {
        const damaged = [...lines];
        for (const { line, at, put } of changes) damaged[line] = (damaged[line] ?? '').slice(0, at) + put;
        play(name, damaged);
      }),
      { numRuns: 50 },
    );
  });
});

test('no protocol throws for lines of arbitrary JSON', () => {
  const typed = fc.record({
    type: fc.constantFrom('system', 'assistant', 'user', 'result', 'control_request', 'item.completed', 'x'),
    subtype: fc.constantFrom('init', 'can_use_tool', 'success', 'api_retry'),
    message: fc.jsonValue(),
    item: fc.jsonValue(),
    request: fc.jsonValue(),
  });
  const called = fc.record({
    id: fc.oneof(fc.nat(4), fc.string(), fc.constant(null)),
    method: fc.constantFrom(
      'session/update',
      'session/request_permission',
      'item/completed',
      'turn/completed',
    ),
    params: fc.jsonValue(),
  });
  const line = fc.oneof(typed, called, fc.jsonValue()).map(value => JSON.stringify(value));
  fc.assert(
    fc.property(fc.array(line, { maxLength: 8 }), lines => {
      for (const name of ['acp', 'codex-appserver', 'codex', 'claude']) play(name, lines);
    }),
    { numRuns: 500 },
  );
});

function linesOf(bytes: Buffer, places: readonly number[]): readonly string[] {
  const lines: string[] = [];
  const splitter = new LineSplitter(line => lines.push(line), 10_000_000);
  const cuts = [0, ...places.toSorted((a, b) => a - b), bytes.length];
  for (const [index, from] of cuts.entries()) splitter.push(bytes.subarray(from, cuts[index + 1] ?? from));
  splitter.end();
  return lines;
}
