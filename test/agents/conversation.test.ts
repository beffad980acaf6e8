import { readFileSync } from 'node:fs';
import { describe, expect, test } from 'vitest';
import { resultOf } from '../../src/agents/test-support.ts';
import type { JsonObject } from '../../src/core/json.ts';
import { installedAgents } from './support/install.ts';
import { realAgentLab } from './support/lab.ts';
import { acp, claude, codex, codexServer } from './support/players.ts';

const lab = realAgentLab();
const players = [claude, codex, codexServer, acp];
const schema: JsonObject = {
  type: 'object',
  properties: { files: { type: 'array', items: { type: 'string' } } },
  required: ['files'],
  additionalProperties: false,
};

/** Makes Codex retry immediately, which it only does if the response says when. */
const momentary = { status: 429, message: 'Slow down.', times: 1, headers: { 'retry-after': '0' } };

describe.skipIf(!installedAgents()).each(players)('$name', player => {
  test('returns the answer', async () => {
    const { run, model } = await lab.prepare(player, { hello: [{ say: 'Hello there.' }] });
    const { result, events } = await run({ prompt: 'Say [[hello]].' });
    expect(result).toMatchObject({
      kind: 'ok',
      text: 'Hello there.',
      sessionId: expect.stringMatching(/./),
      usage: { inputTokens: 100, outputTokens: 10 },
      denials: [],
    });
    const types = events.map(({ type }) => type);
    expect(types.filter(type => type !== 'usage')).toEqual(['started', 'text', 'done']);
    expect(types).toContain('usage');
    expect(model.outside).toEqual([]);
  });

  test('receives its system prompt, and asks only the configured model', async () => {
    const { run, model } = await lab.prepare(player, { hello: [{ say: 'Hello.' }] });
    await run({ prompt: 'Say [[hello]].', agent: { ...player.agent, systemPrompt: 'You are a pirate.' } });
    const [request] = model.requestsFor('hello');
    const told = [
      request?.conversation.system,
      ...(request?.conversation.turns.map(turn => turn.text) ?? []),
    ];
    expect(told.join('\n')).toContain('You are a pirate.');
  });

  test('edits a file in its workspace', async () => {
    const { run } = await lab.prepare(player, {
      edit: [
        { say: 'I write it.', actions: [{ write: { path: 'hello.txt', content: 'hello\n' } }] },
        { say: 'Done.' },
      ],
    });
    const { result, events } = await run({ prompt: 'Please [[edit]].' });
    expect(result).toMatchObject({ kind: 'ok', text: 'Done.', denials: [] });
    expect(result.usage).toMatchObject({ inputTokens: 200, outputTokens: 20 });
    expect(readFileSync(lab.path('hello.txt'), 'utf8')).toBe('hello\n');
    const tools = events.filter(({ type }) => type === 'tool-start' || type === 'tool-end');
    expect(tools).toMatchObject([
      { type: 'tool-start', name: expect.stringMatching(/^(Write|Edit)$/) },
      { type: 'tool-end', ok: true },
    ]);
  });

  test('retries after a short limit of the model', async () => {
    const { run, model } = await lab.prepare(player, {
      flaky: [{ fail: momentary, say: 'Recovered.' }],
    });
    const { result } = await run({ prompt: 'Be [[flaky]].' });
    expect(result).toMatchObject({ kind: 'ok', text: 'Recovered.', usage: { inputTokens: 100 } });
    expect(model.requestsFor('flaky')).toHaveLength(2);
  });

  test('reports a lasting limit as a limit, not as a failure', async () => {
    const { run } = await lab.prepare(player, { limit: [{ fail: { status: 429, message: 'Too many.' } }] });
    const { result, events } = await run({ prompt: 'Meet a [[limit]].' });
    expect(result).toMatchObject({ kind: 'limit', error: { code: 'AGENT_LIMIT' } });
    expect(events.at(-2)).toMatchObject({ type: 'limit' });
  });

  test('continues in the same session when the host says that the limit is over', async () => {
    const { open } = await lab.prepare(player, {
      limit: [{ fail: { status: 429, message: 'Too many.' } }],
      on: [{ say: 'Here I am again.' }],
    });
    const { session, events } = open({ prompt: 'Meet a [[limit]].', onLimit: 'ask' });
    const turn = await session.next();
    // `codex exec` ends with its turn and has to be resumed.
    if (player === codex) expect(turn).toMatchObject({ kind: 'end', result: { kind: 'limit' } });
    else {
      expect(turn).toMatchObject({ kind: 'question', question: { kind: 'limit' } });
      const last = resultOf(await session.next({ kind: 'continue', prompt: 'Go [[on]].' }));
      expect(last).toMatchObject({ kind: 'ok', text: 'Here I am again.' });
    }
    expect(events.filter(({ type }) => type === 'started')).toHaveLength(1);
    await session.close();
  });

  test("fails if the model's server fails", async () => {
    const { run } = await lab.prepare(player, { broken: [{ fail: { status: 500, message: 'It broke.' } }] });
    const { result } = await run({ prompt: 'Be [[broken]].' });
    expect(result).toMatchObject({
      kind: 'failed',
      error: { code: 'AGENT_UNAVAILABLE', hint: expect.stringContaining('add `retry`') },
    });
  });

  test('fails with AGENT_LOGIN if it is not logged in', async () => {
    const { run } = await lab.prepare(player, {
      key: [{ fail: { status: 401, message: 'invalid x-api-key' } }],
    });
    const { result } = await run({ prompt: 'Use the [[key]].' });
    expect(result).toMatchObject({ kind: 'failed', error: { code: 'AGENT_LOGIN' } });
  });

  test('returns structured output that matches the schema', async () => {
    const { run } = await lab.prepare(player, {
      list: [{ actions: [{ answer: { files: ['a', 'b'] } }] }, { say: 'Ok.' }],
    });
    const { result } = await run({ prompt: 'Make a [[list]].', outputSchema: schema });
    expect(result).toMatchObject({ kind: 'ok', structured: { files: ['a', 'b'] } });
  });

  test('fails if it answers with text instead of structured output', async () => {
    const { run } = await lab.prepare(player, { list: [{ say: 'There are two.' }, { say: 'Two, I said.' }] });
    const { result } = await run({ prompt: 'Make a [[list]].', outputSchema: schema });
    expect(result).toMatchObject({
      kind: 'failed',
      error: { code: 'OUTPUT_INVALID', message: expect.stringContaining('no structured output') },
    });
  });

  test('fails if its structured output does not match the schema', async () => {
    const wrong = { actions: [{ answer: { files: 'none' } }] };
    const { run } = await lab.prepare(player, { list: Array.from({ length: 10 }, () => wrong) });
    const { result } = await run({ prompt: 'Make a [[list]].', outputSchema: schema });
    expect(result).toMatchObject({ kind: 'failed', error: { code: 'OUTPUT_INVALID' } });
  });
});
