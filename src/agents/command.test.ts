import { describe, expect, test } from 'vitest';
import { commandLaunch } from './command.ts';
import { agentLab, agentOf, requestOf } from './test-support.ts';

const lab = agentLab();
const run = (source: string, prompt = 'Do it.') =>
  lab.run({ agent: agentOf({ command: lab.program(source) }), prompt });

describe('the prompt', () => {
  test.each([
    ['on standard input', ['cat'], { argv: ['cat'], stdin: { text: 'Do it.' } }],
    ['as an argument', ['echo', '-n', '{prompt}!'], { argv: ['echo', '-n', 'Do it.!'], stdin: 'ignore' }],
    ['in a file', ['cat', '{prompt_file}'], { argv: ['cat', '/tmp/x/prompt.md'], stdin: 'ignore' }],
  ])('is passed %s', (_where, command, launch) => {
    const request = requestOf({ agent: agentOf({ command }) });
    expect(commandLaunch(request, '/tmp/x')).toMatchObject(launch);
  });

  test('is never interpreted: quotes, dollars and braces arrive unchanged', async () => {
    const prompt = `"'\`$(touch x) {prompt_file} \\ $HOME`;
    const agent = agentOf({ command: ['printf', '%s', '{prompt}'] });
    const { result } = await lab.run({ agent, prompt });
    expect(result).toMatchObject({ kind: 'ok', text: prompt });
  });

  test('follows the system prompt', async () => {
    const agent = agentOf({ command: ['cat'], systemPrompt: 'You plan.' });
    const { result } = await lab.run({ agent });
    expect(result).toMatchObject({ kind: 'ok', text: 'You plan.\n\nDo it.' });
  });

  test('can be read from a file, like the schema', async () => {
    const agent = agentOf({ command: ['cat', '{prompt_file}', '{schema_file}'] });
    const { result } = await lab.run({
      agent,
      prompt: '```json\n[1]\n```\n',
      outputSchema: { type: 'array' },
    });
    expect(result).toMatchObject({ kind: 'ok', structured: [1] });
  });
});

describe('a program that prints text', () => {
  test('returns the text as its answer', async () => {
    const { result, events } = await run("console.log('one\\ntwo')");
    expect(result).toMatchObject({ kind: 'ok', text: 'one\ntwo' });
    expect(events.map(event => event.type)).toEqual(['text', 'text', 'done']);
  });

  test('fails if it exits with an error, regardless of its output', async () => {
    const { result } = await run("console.log('all is well'); process.exitCode = 3");
    expect(result).toMatchObject({ kind: 'failed', error: { code: 'AGENT_FAILED', exitCode: 3 } });
  });

  test('can print 100 MB, of which the end is the answer', async () => {
    const flood = `
      const part = ('x'.repeat(995) + 'line\\n').repeat(1000);
      const write = left => (left === 0 ? console.log('the end') : process.stdout.write(part, () => write(left - 1)));
      write(100);`;
    const agent = agentOf({ command: lab.program(flood) });
    const { session } = lab.open({ agent }, { onEvent: () => {} });
    const turn = await session.next();
    await session.close();
    const text = turn.kind === 'end' && turn.result.kind === 'ok' ? turn.result.text : '';
    expect(text.length).toBeLessThanOrEqual(1_000_000);
    expect(text.endsWith('line\nthe end')).toBe(true);
  });
});

describe('a program that prints events', () => {
  const lines = (...messages: readonly object[]) =>
    messages.map(message => `console.log(${JSON.stringify(JSON.stringify(message))});`).join('\n');
  const text = { type: 'text', text: 'Working.' };

  test('reports events, usage and a result', async () => {
    const { result, events } = await run(
      lines(
        { type: 'started', sessionId: 's1' },
        text,
        { type: 'tool-start', id: '1', name: 'Bash', input: { command: 'ls' } },
        { type: 'tool-end', id: '1', ok: true },
        { type: 'usage', inputTokens: 3, outputTokens: 4 },
        { type: 'result', text: 'Done.', output: { n: 1 } },
      ),
    );
    expect(result).toEqual({
      kind: 'ok',
      text: 'Done.',
      structured: { n: 1 },
      sessionId: 's1',
      usage: { inputTokens: 3, outputTokens: 4, cachedTokens: 0, costUsd: null },
      denials: [],
    });
    expect(events.map(event => event.type)).toEqual([
      'started',
      'text',
      'tool-start',
      'tool-end',
      'usage',
      'done',
    ]);
  });

  test('answers with its output if the result is in the format of another program', async () => {
    const { result } = await run(
      lines(
        { type: 'message', role: 'assistant', content: 'Hello.' },
        { type: 'result', status: 'success', stats: { total_tokens: 3 } },
      ),
    );
    expect(result).toMatchObject({ kind: 'ok', text: expect.stringContaining('Hello.') });
  });

  test('fails if its result is an error, even with exit code 0', async () => {
    const { result } = await run(lines(text, { type: 'result', error: 'I cannot.' }));
    expect(result).toMatchObject({ kind: 'failed', error: { code: 'AGENT_FAILED', message: 'I cannot.' } });
  });

  test.each([
    [{ reason: 'I could not do it' }, 'I could not do it'],
    [{ message: 'No.', code: 3 }, 'No.'],
    [{ code: 3 }, '{"code":3}'],
    [['one', 'two'], '["one","two"]'],
    [true, 'the agent failed without giving a reason'],
    [0, '0'],
  ])('fails if the error of its result is %j', async (error, message) => {
    const { result } = await run(lines({ type: 'result', error }));
    expect(result).toMatchObject({ kind: 'failed', error: { code: 'AGENT_FAILED', message } });
  });

  test.each([null, false])('succeeds if the error of its result is %j', async error => {
    const { result } = await run(lines({ type: 'result', text: 'Done.', error }));
    expect(result).toMatchObject({ kind: 'ok', text: 'Done.' });
  });

  test.each([
    ['is longer than the limit', `'{"type":"result","text":"' + 'z'.repeat(9e6) + '"}'`, /more than 8 MiB/],
    ['is not valid JSON', `'{"type":"result","text":"Done."'`, /cannot be read: it is not valid JSON/],
    ['has no text', `'{"type":"result","text":{"a":1}}'`, /cannot be read: its text is not a string/],
    [
      'is nested too deeply',
      `'{"type":"result","output":' + '['.repeat(1e5) + ']'.repeat(1e5) + '}'`,
      /nested too deeply/,
    ],
  ])('fails if its result %s', async (_, line, message) => {
    const { result } = await run(`console.log(${line})`);
    expect(result).toMatchObject({
      kind: 'failed',
      error: { code: 'AGENT_PROTOCOL', message: expect.stringMatching(message) },
    });
  });

  test('reports token counts that are whole, finite and not negative', async () => {
    const usage = (fields: string) => `console.log('{"type":"usage",${fields}}');`;
    const { result } = await run(
      [
        usage('"inputTokens":1.5,"outputTokens":-3,"cachedTokens":1e999,"costUsd":0.5'),
        usage('"inputTokens":1e17,"outputTokens":2,"costUsd":-1'),
        lines({ type: 'result', text: 'Done.' }),
      ].join('\n'),
    );
    expect(result.usage).toEqual({
      inputTokens: Number.MAX_SAFE_INTEGER,
      outputTokens: 2,
      cachedTokens: Number.MAX_SAFE_INTEGER,
      costUsd: 0.5,
    });
  });

  test('fails if its exit code is not 0, even with a good result', async () => {
    const { result } = await run(`${lines(text, { type: 'result', text: 'Done.' })} process.exitCode = 1;`);
    expect(result).toMatchObject({ kind: 'failed', error: { code: 'AGENT_FAILED', exitCode: 1 } });
  });

  test('fails without a result', async () => {
    const { result } = await run(lines(text));
    expect(result).toMatchObject({
      kind: 'failed',
      error: { code: 'AGENT_PROTOCOL', hint: expect.stringContaining('"type":"result"') },
    });
  });

  test('can report a limit', async () => {
    const { result } = await run(lines({ type: 'result', limit: { resetsAt: '2026-01-01T00:00:00Z' } }));
    expect(result).toMatchObject({ kind: 'limit', resetsAt: '2026-01-01T00:00:00Z' });
  });
});

test('a price adds a cost to the usage', async () => {
  const usage = { type: 'usage', inputTokens: 1_000_000, outputTokens: 500_000 };
  const source = `console.log('${JSON.stringify(usage)}'); console.log('{"type":"result"}')`;
  const agent = agentOf({ command: lab.program(source), price: { inputPerMtok: 2, outputPerMtok: 8 } });
  const { result } = await lab.run({ agent });
  expect(result.usage.costUsd).toBe(6);
});

test('the step overrides the environment of the agent, which overrides that of the host', async () => {
  const agent = agentOf({
    command: ['sh', '-c', 'echo $A $B $C $REPRISE_INCARNATION'],
    env: { B: 'agent', C: 'agent' },
  });
  const inheritEnv = { PATH: process.env['PATH'], A: 'host', B: 'host', C: 'host' };
  const { result } = await lab.run({ agent, env: { C: 'step' } }, { inheritEnv });
  expect(result).toMatchObject({ text: expect.stringMatching(/^host agent step [\w-]+$/) });
});
