import { describe, expect, test } from 'vitest';
import { judgedTurn, promptWithoutKey, withEnding } from './next-key.ts';
import { noUsage } from './session.ts';
import { agentOf, requestOf } from './test-support.ts';

const prompt = 'A task that says <next>land</next>.';
const ending = 'End with:\n\n<next>land</next>\n\nor\n\n<next>\ngive-up: why\n</next>';
const requestFor = (kind: 'claude' | 'codex' | 'acp' | 'command' | 'scripted') =>
  requestOf({ agent: agentOf({ kind }), prompt, env: { A: 'a' } });

describe.each(['claude', 'codex', 'acp'] as const)('the prompt of a %s agent', kind => {
  test('shows the key in its ending, and nowhere else', () => {
    const request = withEnding(requestFor(kind), { ending, key: 'k1' });
    expect(request.prompt).toBe(
      `${prompt}\n\nEnd with:\n\n<next key="k1">land</next>\n\nor\n\n<next key="k1">\ngive-up: why\n</next>`,
    );
    expect(request).toMatchObject({ nextKey: 'k1', env: { A: 'a' } });
    expect(request.env).not.toHaveProperty('REPRISE_NEXT_KEY');
  });

  test('is compared without the key', () => {
    const first = withEnding(requestFor(kind), { ending, key: 'k1' });
    const second = withEnding(requestFor(kind), { ending, key: 'k2' });
    expect(promptWithoutKey(first)).toBe(promptWithoutKey(second));
    expect(promptWithoutKey(first)).toBe(`${prompt}\n\n${ending}`);
  });
});

test.each(['command', 'scripted'] as const)('a %s agent finds the key in its environment', kind => {
  const request = withEnding(requestFor(kind), { ending, key: 'k1' });
  expect(request).toMatchObject({
    prompt: `${prompt}\n\n${ending}`,
    env: { A: 'a', REPRISE_NEXT_KEY: 'k1' },
  });
  expect(request.nextKey).toBeUndefined();
});

describe('the last tag of an answer', () => {
  const judged = (text: string, kind: 'claude' | 'command', nextKey?: string | null) => {
    const result = { kind: 'ok', text, usage: noUsage, denials: [] } as const;
    const end = { kind: 'end', result, ...(nextKey === undefined ? {} : { nextKey }) } as const;
    const turn = judgedTurn(end, requestFor(kind), 'k1');
    return turn.result.kind === 'ok' ? turn.result.text : undefined;
  };

  test.each([
    ['claude', undefined, '<next key="k1">', '<next>'],
    ['claude', undefined, '<next>', '<next key="missing">'],
    ['claude', undefined, '<next key="k2">', '<next key="wrong">'],
    ['claude', undefined, '<next key="missing">', '<next key="wrong">'],
    ['command', undefined, '<next>', '<next>'],
    ['command', undefined, '<next key="k1">', '<next>'],
    ['command', undefined, '<next key="k2">', '<next key="wrong">'],
    // A recorded session is judged by the key that it was recorded with, or by none.
    ['claude', 'k9', '<next key="k9">', '<next>'],
    ['claude', 'k9', '<next key="k1">', '<next key="wrong">'],
    ['claude', 'k9', '<next>', '<next key="missing">'],
    ['claude', null, '<next>', '<next>'],
    ['claude', null, '<next key="k9">', '<next>'],
  ] as const)('of a %s agent, with the recorded key %j: %s becomes %s', (kind, nextKey, given, expected) => {
    const before = 'I mention <next> and <next key="k2">.\n';
    expect(judged(`${before}${given}land</next>`, kind, nextKey)).toBe(`${before}${expected}land</next>`);
  });
});
