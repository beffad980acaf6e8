import { randomUUID } from 'node:crypto';
import { describe, expect, test } from 'vitest';
import { inspectAgent } from '../../src/agents/doctor.ts';
import { installedAgents } from './support/install.ts';
import { realAgentLab } from './support/lab.ts';
import { acp, claude, codex, codexServer } from './support/players.ts';

const lab = realAgentLab();

describe.skipIf(!installedAgents()).each([claude, codex, acp])('$name', player => {
  test('is found on PATH and reports its version', async () => {
    const { inheritEnv } = await lab.prepare(player, {});
    const found = await inspectAgent(player.agent, { path: inheritEnv['PATH'], env: inheritEnv });
    expect(found).toMatchObject({
      installed: true,
      usable: true,
      version: expect.stringMatching(/^\d+\.\d+\.\d+/),
    });
  });
});

describe.skipIf(!installedAgents()).each([claude, codex, codexServer, acp])('$name', player => {
  test('fails with a message if the session to resume does not exist', async () => {
    const { run, model } = await lab.prepare(player, { hello: [{ say: 'Hello.' }] });
    const { result } = await run({ prompt: 'Say [[hello]].', resume: { sessionId: randomUUID() } });
    expect(result).toMatchObject({
      kind: 'failed',
      error: { message: expect.stringMatching(/no |not |found/i) },
    });
    expect(model.requestsFor('hello')).toEqual([]);
  });

  test('accepts a prompt that is too long for an argument', async () => {
    const { run, model } = await lab.prepare(player, { long: [{ say: 'I have read it.' }] });
    const prompt = `${'word '.repeat(30_000)} and then [[long]].`;
    const { result } = await run({ prompt });
    expect(result).toMatchObject({ kind: 'ok', text: 'I have read it.' });
    expect(model.requestsFor('long')[0]?.conversation.turns.some(({ text }) => text.includes(prompt))).toBe(
      true,
    );
  });
});

describe.skipIf(!installedAgents())('claude', () => {
  test('cannot use a chosen session id twice', async () => {
    const { run } = await lab.prepare(claude, { hello: [{ say: 'Hello.' }] });
    const sessionId = randomUUID();
    const first = await run({ prompt: 'Say [[hello]].', sessionId });
    expect(first.result).toMatchObject({ kind: 'ok', sessionId });
    const second = await run({ prompt: 'Say [[hello]].', sessionId });
    expect(second.result).toMatchObject({
      kind: 'failed',
      error: { message: expect.stringContaining('in use') },
    });
  });

  test('can fork a session', async () => {
    const { run, model } = await lab.prepare(claude, { one: [{ say: 'One.' }], two: [{ say: 'Two.' }] });
    const { result } = await run({ prompt: 'Say [[one]].' });
    const { sessionId: old = '', usage } = result;
    const copy = randomUUID();
    const forked = await run({
      prompt: 'Say [[two]].',
      resume: { sessionId: old, fork: true, usage },
      sessionId: copy,
    });
    expect(forked.result).toMatchObject({ kind: 'ok', text: 'Two.', sessionId: copy });
    expect(forked.result.usage).toEqual(usage);
    expect(
      model
        .requestsFor('two')[0]
        ?.conversation.turns.map(({ text }) => text)
        .join(),
    ).toContain('One.');
  });

  test('stops at the maximum number of turns', async () => {
    const { run } = await lab.prepare(claude, {
      edit: Array.from({ length: 5 }, (_, i) => ({
        actions: [{ write: { path: `${i}.txt`, content: 'x' } }],
      })),
    });
    const { result } = await run({ prompt: 'Please [[edit]].', maxTurns: 2 });
    expect(result).toMatchObject({ kind: 'failed', error: { hint: expect.stringContaining('more turns') } });
  });
});
