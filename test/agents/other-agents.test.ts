import { existsSync, readFileSync } from 'node:fs';
import { describe, expect, test } from 'vitest';
import { policyOf } from '../../src/agents/test-support.ts';
import { installedAgents } from './support/install.ts';
import { realAgentLab } from './support/lab.ts';
import { acp, claude, codexAcp, copilot, gemini, opencode, qwen } from './support/players.ts';

const lab = realAgentLab();
const command = 'echo made > made.txt';

const script = {
  edit: [
    { say: 'I write it.', actions: [{ write: { path: 'hello.txt', content: 'hello\n' } }] },
    { say: 'Done.' },
  ],
  run: [{ say: 'I run it.', actions: [{ run: command }] }, { say: 'That was it.' }],
};

describe.skipIf(!installedAgents()).each([codexAcp, gemini, opencode, qwen, copilot])('$name', player => {
  test('edits a file, answers and reports its tokens', async () => {
    const { run } = await lab.prepare(player, script);
    const { result } = await run({ prompt: 'Please [[edit]].' });
    expect(result).toMatchObject({ kind: 'ok', denials: [], sessionId: expect.stringMatching(/./) });
    expect(readFileSync(lab.path('hello.txt'), 'utf8')).toBe('hello\n');
    // OpenCode reports only the last request.
    const requests = player === opencode ? 1 : 2;
    expect(result.usage).toMatchObject({ inputTokens: 100 * requests, outputTokens: 10 * requests });
  });

  test('does not edit with `read-only`, which is not a success if it ends the turn', async () => {
    const { run } = await lab.prepare(player, script);
    const permissions = policyOf({ preset: 'read-only' });
    const { result } = await run({ prompt: 'Please [[edit]].', permissions });
    expect(existsSync(lab.path('hello.txt'))).toBe(false);
    const goesOn = player === gemini || player === qwen;
    expect(result).toMatchObject(
      goesOn
        ? { kind: 'ok', denials: [{ tool: expect.any(String) }] }
        : { kind: 'failed', error: { code: 'PERMISSION_DENIED' } },
    );
  });
});

describe.skipIf(!installedAgents()).each([opencode, qwen, copilot])('$name', player => {
  test('does not run a command with `edit`', async () => {
    const { run } = await lab.prepare(player, script);
    const { result } = await run({ prompt: 'Please [[run]].' });
    expect(existsSync(lab.path('made.txt'))).toBe(false);
    expect(result.denials).toMatchObject([{ lineToAdd: `allow: ["Bash(${command})"]` }]);
  });

  test('resumes its session, whose conversation the model sees', async () => {
    const { run, model } = await lab.prepare(player, {
      one: [{ say: 'The first answer.' }],
      two: [{ say: 'The second answer.' }],
    });
    const first = await run({ prompt: 'Say [[one]].' });
    const sessionId = first.result.sessionId ?? '';
    const { result } = await run({ prompt: 'Say [[two]].', resume: { sessionId } });
    expect(result).toMatchObject({ kind: 'ok', text: 'The second answer.', sessionId });
    expect(model.requestsFor('two')[0]?.told).toContain('Say [[one]].');
  });
});

describe.skipIf(!installedAgents())('copilot', () => {
  test.each([
    [401, 'AGENT_LOGIN'],
    [400, 'AGENT_FAILED'],
  ])('fails if the server answers with %i after an edit', async (status, code) => {
    const { run } = await lab.prepare(copilot, {
      half: [
        { say: 'I begin.', actions: [{ write: { path: 'half.txt', content: 'half\n' } }] },
        { fail: { status, message: 'No.' } },
      ],
    });
    const { result } = await run({ prompt: 'Please [[half]].' });
    expect(result).toMatchObject({ kind: 'failed', error: { code } });
  });
});

describe.skipIf(!installedAgents()).each([claude, acp])('$name', player => {
  test('ends only when its subagent has', async () => {
    const { run } = await lab.prepare(player, {
      delegate: [
        {
          say: 'I delegate.',
          actions: [
            {
              use: {
                tool: 'Task',
                input: { description: 'Part', prompt: 'Please [[part]].', subagent_type: 'general-purpose' },
              },
            },
          ],
        },
        { say: 'It works on it.' },
        { say: 'All is done.' },
      ],
      part: [
        { say: 'I write it.', actions: [{ write: { path: 'part.txt', content: 'part\n' } }] },
        { say: 'Part done.' },
      ],
    });
    const { result } = await run({ prompt: 'Please [[delegate]].' });
    expect(result).toMatchObject({ kind: 'ok' });
    expect(readFileSync(lab.path('part.txt'), 'utf8')).toBe('part\n');
  });

  test('is not offered tools that leave the workspace or wait for a person', async () => {
    const { run, model } = await lab.prepare(player, { hello: [{ say: 'Hello.' }] });
    await run({ prompt: 'Say [[hello]].' });
    const offered = model.requestsFor('hello')[0]?.conversation.tools.map(({ name }) => name) ?? [];
    expect(offered).toContain('Bash');
    expect(offered.filter(name => /Worktree|AskUserQuestion/.test(name))).toEqual([]);
  });
});

describe.skipIf(!installedAgents())('claude', () => {
  test('stops at its budget during a turn', async () => {
    const { run, model } = await lab.prepare(claude, {
      spend: ({ index }) => ({
        say: 'More.',
        actions: [{ write: { path: `${index}.txt`, content: 'x\n' } }],
      }),
    });
    const { result } = await run({ prompt: 'Please [[spend]].', budget: { costUsd: 0.001 } });
    expect(result).toMatchObject({ kind: 'failed', error: { code: 'BUDGET_EXCEEDED' } });
    expect(model.requestsFor('spend').length).toBeLessThan(5);
  });
});
