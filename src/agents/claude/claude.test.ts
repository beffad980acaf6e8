import { existsSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, test } from 'vitest';
import type { Json } from '../../core/json.ts';
import { agentLab, agentOf, eventsIn, policyOf, requestOf, resultOf, signalsOf } from '../test-support.ts';
import { claudeLaunch, claudeProtocol } from './claude.ts';

const lab = agentLab();
const program = join(import.meta.dirname, '../../../test/support/claude-agent/program.mjs');
const agent = agentOf({ kind: 'claude', command: [process.execPath, program] });
const allowEcho = policyOf({ allow: ['Bash'] });

describe('the command line', () => {
  const claude = agentOf({ kind: 'claude' });
  const always = [
    'claude',
    '-p',
    '--input-format',
    'stream-json',
    '--output-format',
    'stream-json',
    '--verbose',
    '--permission-prompt-tool',
    'stdio',
    '--permission-mode',
    'default',
  ];

  test.each([
    ['nothing special', {}, []],
    ['a model', { agent: { ...claude, model: 'opus' } }, ['--model', 'opus']],
    [
      'system prompts',
      { agent: { ...claude, systemPrompt: 'You plan.' }, systemPrompt: 'Be brief.' },
      ['--append-system-prompt', 'Be brief.\n\nYou plan.'],
    ],
    ['a schema', { outputSchema: { type: 'object' } }, ['--json-schema', '{"type":"object"}']],
    ['a chosen session', { sessionId: 'abc' }, ['--session-id', 'abc']],
    ['an old session', { sessionId: 'abc', resume: { sessionId: 'old' } }, ['--resume', 'old']],
    [
      'a copy of an old session',
      { sessionId: 'abc', resume: { sessionId: 'old', fork: true } },
      ['--resume', 'old', '--fork-session', '--session-id', 'abc'],
    ],
    ['a limit of turns', { maxTurns: 3 }, ['--max-turns', '3']],
    [
      'read-only',
      { permissions: policyOf({ preset: 'read-only' }) },
      ['--disallowedTools', 'Edit', 'Write', 'NotebookEdit'],
    ],
    [
      'read-only but for one thing',
      { permissions: policyOf({ preset: 'read-only', allow: ['Edit(docs/**)'], deny: ['WebFetch'] }) },
      ['--disallowedTools', 'WebFetch'],
    ],
    ['more arguments', { agent: { ...claude, args: ['--bare'] } }, ['--bare']],
  ])('with %s', (_what, given, more) => {
    const launch = claudeLaunch(requestOf({ agent: claude, ...given }));
    expect(launch).toMatchObject({ argv: [...always, ...more], stdin: 'open' });
  });

  test('never skips permissions, even for an agent that may do everything', () => {
    const { argv } = claudeLaunch(requestOf({ agent: claude, permissions: policyOf({ preset: 'full' }) }));
    expect(argv.join(' ')).not.toMatch(/skip|bypass/);
  });
});

describe('the last line', () => {
  const verdictOf = (result: Json) =>
    signalsOf(claudeProtocol, [result]).find(({ kind }) => kind === 'verdict');
  const last = { type: 'result', subtype: 'success', is_error: false, result: 'Fine.' };

  test.each([
    ['is right', last, { kind: 'ok', text: 'Fine.' }],
    ['holds data', { ...last, structured_output: { n: 1 } }, { kind: 'ok', structured: { n: 1 } }],
    [
      'is an error although it says success',
      { ...last, is_error: true, api_error_status: 500 },
      { kind: 'failed', error: { code: 'AGENT_FAILED', hint: expect.stringContaining('retry') } },
    ],
    [
      'says that the key is wrong',
      { ...last, is_error: true, api_error_status: 401 },
      { kind: 'failed', error: { code: 'AGENT_LOGIN', hint: expect.stringContaining('/login') } },
    ],
    [
      'says that too many turns were taken',
      {
        type: 'result',
        subtype: 'error_max_turns',
        is_error: true,
        terminal_reason: 'max_turns',
        errors: ['3 turns'],
      },
      {
        kind: 'failed',
        error: { code: 'AGENT_FAILED', message: '3 turns', hint: expect.stringContaining('turns') },
      },
    ],
    [
      'tells a limit with its end',
      { ...last, is_error: true, result: 'Claude AI usage limit reached|1800000000' },
      { kind: 'limit', resetsAt: '2027-01-15T08:00:00.000Z', error: { code: 'AGENT_LIMIT' } },
    ],
    ['tells a limit by its status', { ...last, is_error: true, api_error_status: 429 }, { kind: 'limit' }],
    ['was stopped', { ...last, is_error: true, terminal_reason: 'aborted_tools' }, { kind: 'stopped' }],
    ['does not say whether it is an error', { type: 'result', result: 'x' }, { kind: 'failed' }],
  ])('%s', (_what, line, verdict) => {
    expect(verdictOf(line)).toMatchObject({ verdict });
  });
});

test('a retry and an unknown line are told', () => {
  const retry = {
    type: 'system',
    subtype: 'api_retry',
    attempt: 2,
    retry_delay_ms: 500,
    error_status: 529,
    error: 'busy',
  };
  expect(eventsIn(signalsOf(claudeProtocol, [retry, { type: 'new_thing' }, 'not JSON']))).toEqual([
    { type: 'retry', attempt: 2, delayMs: 500, reason: 'busy (HTTP 529)' },
    { type: 'raw', line: '{"type":"new_thing"}' },
    { type: 'raw', line: 'not JSON' },
  ]);
});

test('a request that we do not know is refused, so that it does not wait for ever', () => {
  const request = { type: 'control_request', request_id: 'constructor', request: { subtype: 'mcp_message' } };
  expect(signalsOf(claudeProtocol, [request])).toContainEqual({
    kind: 'send',
    message: {
      type: 'control_response',
      response: { subtype: 'error', request_id: 'constructor', error: 'not supported' },
    },
  });
});

describe('a session', () => {
  test('ends with a result in one turn, with its cost and its chosen id', async () => {
    const { result, events } = await lab.run({ agent, prompt: '[[hello]]', sessionId: 'abc' });
    expect(result).toEqual({
      kind: 'ok',
      text: 'Hello.',
      sessionId: 'abc',
      usage: { inputTokens: 40, outputTokens: 2, cachedTokens: 30, costUsd: 0.5 },
      denials: [],
    });
    expect(events.map(event => event.type)).toEqual(['started', 'text', 'usage', 'done']);
  });

  test('uses a tool that the policy allows', async () => {
    const { result } = await lab.run({ agent, prompt: '[[bash]]', permissions: allowEcho });
    expect(result).toMatchObject({ kind: 'ok', text: 'Made.', denials: [] });
    expect(readFileSync(join(lab.workspace(), 'made.txt'), 'utf8')).toBe('made\n');
  });

  test('does not use one that it denies, and says which line would allow it', async () => {
    const { result, events } = await lab.run({ agent, prompt: '[[bash]]' });
    expect(result).toMatchObject({
      kind: 'ok',
      text: 'Not made.',
      denials: [{ tool: 'Bash', lineToAdd: 'allow: ["Bash(echo made > made.txt)"]' }],
    });
    expect(events).toContainEqual(expect.objectContaining({ type: 'tool-end', ok: false }));
    expect(existsSync(join(lab.workspace(), 'made.txt'))).toBe(false);
  });

  test('asks the host one question after another, where the policy says so', async () => {
    const permissions = policyOf({ otherwise: 'ask' });
    const { session } = lab.open({ agent, prompt: '[[two]]', permissions });
    const first = await session.next();
    expect(first).toMatchObject({
      kind: 'question',
      question: { kind: 'permission', id: 't1', tool: 'Bash' },
    });
    expect(await session.next()).toEqual(first);
    const second = await session.next({ kind: 'allow' });
    expect(second).toMatchObject({ question: { id: 't2', input: { command: 'echo b > b.txt' } } });
    const end = await session.next({ kind: 'deny', message: 'Not that.' });
    await session.close();
    expect(resultOf(end)).toMatchObject({
      kind: 'ok',
      text: '1 made.',
      denials: [{ tool: 'Bash', message: 'Not that.' }],
    });
  });

  test('ends at a limit with the time when it resets', async () => {
    const { result, events } = await lab.run({ agent, prompt: '[[limit]]' });
    const resetsAt = '2027-01-15T08:00:00.000Z';
    expect(result).toMatchObject({ kind: 'limit', resetsAt, error: { code: 'AGENT_LIMIT' } });
    expect(events).toContainEqual({ type: 'limit', resetsAt, reason: 'You have hit your limit' });
  });

  test('goes on after a limit in the same process, if the host wants to be asked', async () => {
    const { session } = lab.open({ agent, prompt: '[[limit]]', onLimit: 'ask' });
    expect(await session.next()).toMatchObject({ kind: 'question', question: { kind: 'limit' } });
    const end = resultOf(await session.next({ kind: 'continue', prompt: '[[hello]]' }));
    await session.close();
    expect(end).toMatchObject({ kind: 'ok', text: 'Hello.', usage: { outputTokens: 4, costUsd: 1 } });
  });

  test('can be stopped at a limit', async () => {
    const { session } = lab.open({ agent, prompt: '[[limit]]', onLimit: 'ask' });
    await session.next();
    expect(resultOf(await session.next({ kind: 'stop' }))).toMatchObject({ kind: 'limit' });
    await session.close();
  });

  const outputSchema = { type: 'object', properties: { n: { type: 'number' } }, required: ['n'] };

  test('gives data that fits the schema', async () => {
    const { result } = await lab.run({ agent, prompt: '[[json]]', outputSchema });
    expect(result).toMatchObject({ kind: 'ok', structured: { n: 1 } });
  });

  test('fails if the agent only talks, although it calls that a success', async () => {
    const { result } = await lab.run({ agent, prompt: '[[text]]', outputSchema });
    expect(result).toMatchObject({ kind: 'failed', error: { code: 'OUTPUT_INVALID' } });
  });

  test('fails if the data does not fit, whatever the agent says', async () => {
    const { result } = await lab.run({
      agent,
      prompt: '[[json]]',
      outputSchema: { type: 'object', properties: { n: { type: 'string' } } },
    });
    expect(result).toMatchObject({ kind: 'failed', error: { code: 'OUTPUT_INVALID' } });
  });

  test("is cancelled in the agent's own words", async () => {
    const { session, told } = lab.open({ agent, prompt: '[[hang]]' }, { graceMs: 60_000 });
    const turn = session.next();
    await told('text');
    await session.cancel();
    expect(resultOf(await turn)).toMatchObject({
      kind: 'cancelled',
      sessionId: 'chosen-by-the-agent',
      usage: { costUsd: 0.5 },
    });
    await session.close();
  });

  test('is cancelled by the signal of the host, also while a question is open', async () => {
    const abort = new AbortController();
    const permissions = policyOf({ otherwise: 'ask' });
    const { session } = lab.open({ agent, prompt: '[[bash]]', permissions }, { signal: abort.signal });
    await session.next();
    abort.abort();
    await session.cancel();
    expect(resultOf(await session.next())).toMatchObject({ kind: 'cancelled' });
    await session.close();
  });

  test('that is cancelled before it begins starts nothing', async () => {
    const started: unknown[] = [];
    const { session } = lab.open(
      { agent, prompt: '[[hello]]' },
      { signal: AbortSignal.abort(), onProcess: process => void started.push(process) },
    );
    expect(resultOf(await session.next())).toMatchObject({ kind: 'cancelled' });
    await session.close();
    expect(started).toEqual([]);
  });
});
