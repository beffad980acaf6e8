import { existsSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, onTestFinished, test, vi } from 'vitest';
import type { Json } from '../../core/json.ts';
import type { SessionRequest } from '../session.ts';
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

  const argumentsFor = (given: Partial<SessionRequest>) =>
    claudeLaunch(requestOf({ agent: claude, ...given }), '/session').argv;

  test.each([
    ['a model', { agent: { ...claude, model: 'opus' } }, ['--model', 'opus']],
    ['a schema', { outputSchema: { type: 'object' } }, ['--json-schema', '{"type":"object"}']],
    ['a chosen session id', { sessionId: 'abc' }, ['--session-id', 'abc']],
    ['a resumed session', { sessionId: 'abc', resume: { sessionId: 'old' } }, ['--resume', 'old']],
    [
      'a forked session',
      { sessionId: 'abc', resume: { sessionId: 'old', fork: true } },
      ['--resume', 'old', '--fork-session', '--session-id', 'abc'],
    ],
    ['a maximum number of turns', { maxTurns: 3 }, ['--max-turns', '3']],
    [
      'read-only',
      { permissions: policyOf({ preset: 'read-only' }) },
      ['AskUserQuestion', 'Edit', 'Write', 'NotebookEdit'],
    ],
    [
      'read-only with an exception',
      { permissions: policyOf({ preset: 'read-only', allow: ['Edit(docs/**)'], deny: ['WebFetch'] }) },
      ['AskUserQuestion', 'WebFetch'],
    ],
    ['a budget in dollars', { budget: { costUsd: 0.5 } }, ['--max-budget-usd', '0.5']],
    ['additional arguments', { agent: { ...claude, args: ['--bare'] } }, ['--bare']],
  ])('with %s', (_what, given, more) => {
    const argv = argumentsFor(given);
    expect(argv.slice(0, always.length)).toEqual(always);
    expect(argv.join('\n')).toContain(`\n${more.join('\n')}`);
  });

  test('disallows tools that leave the workspace or wait for a person', () => {
    const tools = ['EnterWorktree', 'ExitWorktree', 'AskUserQuestion'];
    expect(argumentsFor({}).slice(-4)).toEqual(['--disallowedTools', ...tools]);
  });

  test('says that the session is unattended, before the system prompts of the step and the agent', () => {
    const argv = argumentsFor({
      agent: { ...claude, systemPrompt: 'You plan.' },
      systemPrompt: 'Be brief.',
    });
    expect(argv[argv.indexOf('--append-system-prompt') + 1]).toMatch(
      /unattended[\s\S]*\n\nBe brief\.\n\nYou plan\.$/,
    );
  });

  test('passes a system prompt that is too long for an argument in a file', () => {
    const systemPrompt = 'x'.repeat(200_000);
    const { argv, files } = claudeLaunch(requestOf({ agent: claude, systemPrompt }), '/session');
    expect(argv).toContain('/session/system-prompt.md');
    expect(files?.['system-prompt.md']).toContain(systemPrompt);
    expect(Math.max(...argv.map(word => word.length))).toBeLessThan(1000);
  });

  test('keeps a budget that the agent defines itself', () => {
    const argv = argumentsFor({
      agent: { ...claude, args: ['--max-budget-usd', '2'] },
      budget: { costUsd: 5 },
    });
    expect(argv.filter(word => word === '--max-budget-usd')).toHaveLength(1);
  });

  test('never skips permissions, even for an agent with full access', () => {
    expect(argumentsFor({}).join(' ')).not.toContain('--strict-mcp-config');
    expect(argumentsFor({ isStrict: true })).toContain('--strict-mcp-config');
    const argv = argumentsFor({ permissions: policyOf({ preset: 'full' }) });
    expect(argv.join(' ')).not.toMatch(/skip|bypass/);
  });
});

describe('the result line', () => {
  const verdictOf = (result: Json) =>
    signalsOf(claudeProtocol, [result]).find(({ kind }) => kind === 'verdict');
  const last = { type: 'result', subtype: 'success', is_error: false, result: 'Fine.' };

  test.each([
    ['has a text', last, { kind: 'ok', text: 'Fine.' }],
    ['has structured output', { ...last, structured_output: { n: 1 } }, { kind: 'ok', structured: { n: 1 } }],
    [
      'is an error although its subtype is success',
      { ...last, is_error: true, api_error_status: 500 },
      { kind: 'failed', error: { code: 'AGENT_UNAVAILABLE', hint: expect.stringContaining('retry') } },
    ],
    [
      'reports a rejected API key',
      { ...last, is_error: true, api_error_status: 401 },
      { kind: 'failed', error: { code: 'AGENT_LOGIN', hint: expect.stringContaining('/login') } },
    ],
    [
      'reports too many turns',
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
      'reports a limit with its reset time',
      { ...last, is_error: true, result: 'Claude AI usage limit reached|1800000000' },
      { kind: 'limit', resetsAt: '2027-01-15T08:00:00.000Z', error: { code: 'AGENT_LIMIT' } },
    ],
    [
      'reports a limit by its HTTP status',
      { ...last, is_error: true, api_error_status: 429 },
      { kind: 'limit' },
    ],
    [
      'reports an interrupt',
      { ...last, is_error: true, terminal_reason: 'aborted_tools' },
      { kind: 'stopped' },
    ],
    ['fails if `is_error` is missing', { type: 'result', result: 'x' }, { kind: 'failed' }],
  ])('%s', (_what, line, verdict) => {
    expect(verdictOf(line)).toMatchObject({ verdict });
  });
});

describe('the usage', () => {
  const line = (id: string, input_tokens: number) => ({
    type: 'assistant',
    message: { id, content: [{ type: 'text', text: 'Hm.' }], usage: { input_tokens, output_tokens: 1 } },
  });
  const result = {
    type: 'result',
    is_error: false,
    result: 'Fine.',
    usage: { input_tokens: 300, output_tokens: 40 },
    total_cost_usd: 0.5,
  };
  const usageIn = (...lines: readonly Json[]) =>
    eventsIn(signalsOf(claudeProtocol, lines)).flatMap(event => (event.type === 'usage' ? event : []));

  test('is reported once for each message, and the rest of it with the result', () => {
    expect(usageIn(line('a', 100), line('a', 100), line('b', 200), result)).toMatchObject([
      { inputTokens: 100, outputTokens: 1, costUsd: null },
      { inputTokens: 200, outputTokens: 1, costUsd: null },
      { inputTokens: 0, outputTokens: 38, costUsd: 0.5 },
    ]);
  });

  test('over the budget in dollars is BUDGET_EXCEEDED', () => {
    const line = { type: 'result', subtype: 'error_max_budget_usd', is_error: true };
    const request = requestOf({ budget: { costUsd: 0.1 } });
    expect(signalsOf(claudeProtocol, [line], { request }).at(-1)).toMatchObject({
      verdict: { kind: 'failed', error: { code: 'BUDGET_EXCEEDED' } },
    });
  });
});

test('a retry and an unknown line are reported as events', () => {
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

test('an unknown request is refused, so that claude does not wait forever', () => {
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
  test('ends with a result in one turn, with its cost and the chosen id', async () => {
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

  test('does not use a tool that the policy denies, and suggests the line that would allow it', async () => {
    const { result, events } = await lab.run({ agent, prompt: '[[bash]]' });
    expect(result).toMatchObject({
      kind: 'ok',
      text: 'Not made.',
      denials: [{ tool: 'Bash', lineToAdd: 'allow: ["Bash(echo made > made.txt)"]' }],
    });
    expect(events).toContainEqual(expect.objectContaining({ type: 'tool-end', ok: false }));
    expect(existsSync(join(lab.workspace(), 'made.txt'))).toBe(false);
  });

  test('asks the host one question after another if the policy says so', async () => {
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

  test('ends at a limit with its reset time', async () => {
    const { result, events } = await lab.run({ agent, prompt: '[[limit]]' });
    const resetsAt = '2027-01-15T08:00:00.000Z';
    expect(result).toMatchObject({ kind: 'limit', resetsAt, error: { code: 'AGENT_LIMIT' } });
    expect(events).toContainEqual({ type: 'limit', resetsAt, reason: 'You have hit your limit' });
  });

  test('continues after a limit in the same process if the host is asked', async () => {
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

  test('continues while a subagent works in the background, and answers its permission requests', async () => {
    const { result } = await lab.run({ agent, prompt: '[[background]]', permissions: allowEcho });
    expect(result).toMatchObject({ kind: 'ok', text: 'The subagent made it.', usage: { costUsd: 1 } });
    expect(readFileSync(join(lab.workspace(), 'made.txt'), 'utf8')).toBe('made\n');
  });

  test('ends with the last answer if a background command is silent for ten minutes', async () => {
    vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout'] });
    onTestFinished(() => void vi.useRealTimers());
    const { session, waitFor } = lab.open({ agent, prompt: '[[server]]' });
    const turn = session.next();
    await waitFor('usage');
    vi.advanceTimersByTime(10 * 60_000);
    expect(resultOf(await turn)).toMatchObject({ kind: 'ok', text: 'A server is running.' });
    vi.useRealTimers();
    await session.close();
  });

  const outputSchema = { type: 'object', properties: { n: { type: 'number' } }, required: ['n'] };

  test('returns structured output that matches the schema', async () => {
    const { result } = await lab.run({ agent, prompt: '[[json]]', outputSchema });
    expect(result).toMatchObject({ kind: 'ok', structured: { n: 1 } });
  });

  test('fails if the agent reports success without structured output', async () => {
    const { result } = await lab.run({ agent, prompt: '[[text]]', outputSchema });
    expect(result).toMatchObject({ kind: 'failed', error: { code: 'OUTPUT_INVALID' } });
  });

  test('fails if the structured output does not match the schema', async () => {
    const { result } = await lab.run({
      agent,
      prompt: '[[json]]',
      outputSchema: { type: 'object', properties: { n: { type: 'string' } } },
    });
    expect(result).toMatchObject({ kind: 'failed', error: { code: 'OUTPUT_INVALID' } });
  });

  test('is cancelled through the protocol', async () => {
    const { session, waitFor } = lab.open({ agent, prompt: '[[hang]]' }, { graceMs: 60_000 });
    const turn = session.next();
    await waitFor('text');
    await session.cancel();
    expect(resultOf(await turn)).toMatchObject({
      kind: 'cancelled',
      sessionId: 'chosen-by-the-agent',
      usage: { costUsd: 0.5 },
    });
    await session.close();
  });

  test('is cancelled by the signal of the host, even while a question is open', async () => {
    const abort = new AbortController();
    const permissions = policyOf({ otherwise: 'ask' });
    const { session } = lab.open({ agent, prompt: '[[bash]]', permissions }, { signal: abort.signal });
    await session.next();
    abort.abort();
    await session.cancel();
    expect(resultOf(await session.next())).toMatchObject({ kind: 'cancelled' });
    await session.close();
  });

  test('starts no process if it is cancelled first', async () => {
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
