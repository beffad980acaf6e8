import { PassThrough } from 'node:stream';
import { describe, expect, it } from 'vitest';
import { askOnTerminal } from './run-process.ts';

const question = {
  step: 'ok',
  message: 'Ship \u001B[31mit\u001B[0m?',
  choices: ['approve', 'apply', 'reject'],
};

/** Types one of the lines at each prompt. */
function terminal(...lines: readonly string[]) {
  const input = new PassThrough();
  const output = new PassThrough().setEncoding('utf8');
  const stopping = new AbortController();
  const shown: string[] = [];
  const remaining = [...lines];
  output.on('data', (text: string) => {
    shown.push(text);
    const line = text.includes('(Enter to answer later)') ? remaining.shift() : undefined;
    if (line !== undefined) input.write(line);
  });
  const stop = { signal: stopping.signal, interrupt: () => stopping.abort() };
  return { input, stopping, shown, answer: askOnTerminal(question, { input, output, stop }) };
}

describe('askOnTerminal', () => {
  it('accepts a choice or its prefix and asks again for anything else', async () => {
    const { answer, shown } = terminal('maybe\n', 'app\n', 'r\n');
    expect(await answer).toBe('reject');
    expect(shown.filter(text => text.includes('(Enter to answer later)'))).toHaveLength(3);
  });

  it('leaves the question unanswered on an empty line, at the end of the input and when the process stops', async () => {
    expect(await terminal('\n').answer).toBeUndefined();
    const ended = terminal();
    ended.input.end();
    expect(await ended.answer).toBeUndefined();
    const stopped = terminal();
    stopped.stopping.abort();
    expect(await stopped.answer).toBeUndefined();
  });

  it('strips control characters from the message', async () => {
    const { answer, shown } = terminal('\n');
    await answer;
    expect(shown.join('')).toContain('ok: Ship it?');
  });
});
