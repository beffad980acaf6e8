import { describe, expect, test } from 'vitest';
import type { Json } from '../core/json.ts';
import { acpProtocol } from './acp/acp.ts';
import { claudeProtocol } from './claude/claude.ts';
import { appServerProtocol } from './codex/app-server.ts';
import type { Protocol, ProtocolContext } from './driver/protocol.ts';
import { eventsIn, requestOf, signalsOf } from './test-support.ts';

const before = { inputTokens: 1000, outputTokens: 100, cachedTokens: 0, costUsd: 5 };
const request = requestOf({ resume: { sessionId: 'old', usage: before } });

const usageIn = <State>(make: (context: ProtocolContext) => Protocol<State>, lines: readonly Json[]) =>
  eventsIn(signalsOf(make, lines, { request })).flatMap(event => (event.type === 'usage' ? event : []));

describe('claude', () => {
  const result = (counted: { readonly tokens: number; readonly costUsd: number }) => ({
    type: 'result',
    is_error: false,
    total_cost_usd: counted.costUsd,
    usage: { input_tokens: 90, output_tokens: 10 },
    modelUsage: { opus: { inputTokens: counted.tokens * 0.9, outputTokens: counted.tokens * 0.1 } },
  });

  test('continues from the earlier cost of the session', () => {
    const lines = [result({ tokens: 1200, costUsd: 6 }), result({ tokens: 1300, costUsd: 6.5 })];
    expect(usageIn(claudeProtocol, lines)).toMatchObject([
      { inputTokens: 90, outputTokens: 10, costUsd: 1 },
      { inputTokens: 90, outputTokens: 10, costUsd: 0.5 },
    ]);
  });

  test('restarts from zero if its last process was killed', () => {
    const lines = [result({ tokens: 100, costUsd: 7 }), result({ tokens: 200, costUsd: 8 })];
    expect(usageIn(claudeProtocol, lines).map(({ costUsd }) => costUsd)).toEqual([7, 1]);
  });

  test('continues from a lower cost if another process overwrote the saved one', () => {
    const half = { tokens: 550 + 100, costUsd: 2.5 + 1 };
    expect(usageIn(claudeProtocol, [result(half)])).toMatchObject([{ costUsd: 1 }]);
  });
});

describe('claude with subagents', () => {
  const models = (inputTokens: number, outputTokens: number) => ({ opus: { inputTokens, outputTokens } });
  const result = { type: 'result', is_error: false, usage: { input_tokens: 30, output_tokens: 3 } };

  test('counts the tokens of all agents since the last result', () => {
    const since = { model_usage_since_last_result: models(90, 9), modelUsage: models(990, 99) };
    expect(usageIn(claudeProtocol, [{ ...result, ...since }])).toMatchObject([
      { inputTokens: 90, outputTokens: 9 },
    ]);
  });

  test('counts them by the difference of the totals if an old version reports only those', () => {
    const lines = [models(90, 9), models(150, 15)].map(modelUsage => ({ ...result, modelUsage }));
    expect(eventsIn(signalsOf(claudeProtocol, lines))).toMatchObject([
      { inputTokens: 90, outputTokens: 9 },
      { inputTokens: 60, outputTokens: 6 },
    ]);
  });

  test('counts the whole cost if its last process was killed', () => {
    const since = { model_usage_since_last_result: models(900, 90), modelUsage: models(900, 90) };
    const lines = [{ ...result, ...since, total_cost_usd: 2 }];
    expect(usageIn(claudeProtocol, lines)).toMatchObject([{ costUsd: 2 }]);
  });
});

describe('an agent that speaks ACP', () => {
  const turn = (amount: number) => [
    { id: 2, result: {} },
    {
      method: 'session/update',
      params: { update: { sessionUpdate: 'usage_update', cost: { amount, currency: 'USD' } } },
    },
    { id: 3, result: { stopReason: 'end_turn', usage: { inputTokens: 90, outputTokens: 10 } } },
  ];

  test('continues from the earlier cost of the session, or restarts from zero', () => {
    expect(usageIn(acpProtocol, turn(6))).toMatchObject([{ costUsd: 1 }, { inputTokens: 90, costUsd: null }]);
    expect(usageIn(acpProtocol, turn(2))).toMatchObject([{ costUsd: 2 }, { inputTokens: 90 }]);
  });
});

test('codex app-server first reports the usage of an old turn, which is not counted again', () => {
  const update = (turnId: string, total: number) => ({
    method: 'thread/tokenUsage/updated',
    params: { turnId, tokenUsage: { total: { inputTokens: total }, last: { inputTokens: 100 } } },
  });
  const lines = [
    { id: 2, result: { thread: { id: 'old' } } },
    update('old-turn', 1000),
    { id: 3, result: { turn: { id: 'new-turn' } } },
    update('new-turn', 1100),
    update('new-turn', 1250),
  ];
  expect(usageIn(appServerProtocol, lines).map(({ inputTokens }) => inputTokens)).toEqual([100, 150]);
});
