import { PassThrough } from 'node:stream';
import { describe, expect, it } from 'vitest';
import { askOnTerminal } from './run-process.ts';

const question = {
  step: 'ok',
  message: 'Ship \u001B[31mit\u001B[0m?',
  choices: ['approve', 'apply', 'reject'],
};

/** Types one line for each time that it is asked. */
function terminal(...lines: readonly string[]) {
  const input = new PassThrough();
  const output = new PassThrough().setEncoding('utf8');
  const stopping = new AbortController();
  const shown: string[] = [];
  const left = [...lines];
  output.on('data', (text: string) => {
    shown.push(text);
    const line = text.includes('(empty: later)') ? left.shift() : undefined;
    if (line !== undefined) input.write(line);
  });
  const stop = { signal: stopping.signal, interrupt: () => stopping.abort() };
  return { input, stopping, shown, answer: askOnTerminal(question, { input, output, stop }) };
}

describe('askOnTerminal', () => {
  it('takes a choice, or the beginning of one, and asks again for anything else', async () => {
    const { answer, shown } = terminal('maybe\n', 'app\n', 'r\n');
    expect(await answer).toBe('reject');
    expect(shown.filter(text => text.includes('(empty: later)'))).toHaveLength(3);
  });

  it('leaves the question for later when nothing is typed, when the input ends, and when the process is to stop', async () => {
    expect(await terminal('\n').answer).toBeUndefined();
    const ended = terminal();
    ended.input.end();
    expect(await ended.answer).toBeUndefined();
    const stopped = terminal();
    stopped.stopping.abort();
    expect(await stopped.answer).toBeUndefined();
  });

  it('shows the message without what it would do to the terminal', async () => {
    const { answer, shown } = terminal('\n');
    await answer;
    expect(shown.join('')).toContain('ok: Ship it?');
  });
});
