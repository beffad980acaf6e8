import { randomUUID } from 'node:crypto';
import { describe, expect, it } from 'vitest';
import { type AgentEvent, type HostQuestion, noUsage, type SessionHost } from '../../agents/session.ts';
import type { RepriseError } from '../../core/errors.ts';
import type { RecordedSession } from '../../engine/recording/session-file.ts';
import { VcrSession } from './serve-session.ts';

const question: HostQuestion = { kind: 'permission', id: 'q', tool: 'Bash', input: { command: 'ls' } };
const textLine = (text: string) => ({ kind: 'event', event: { type: 'text', text } }) as const;
const used = { inputTokens: 3, outputTokens: 1, cachedTokens: 0, costUsd: 0.5 };

const recordingOf = (given: Partial<RecordedSession> = {}): RecordedSession => ({
  kind: 'session',
  file: 'coder.fix.0.jsonl',
  role: 'coder',
  task: 'fix',
  n: 0,
  order: 0,
  agent: { name: 'coder', kind: 'claude' },
  prompt: 'Fix it.',
  promptHash: '',
  resumes: false,
  before: null,
  after: null,
  lines: [
    textLine('May I?'),
    { kind: 'question', question },
    { kind: 'answer', answer: { kind: 'allow' } },
    textLine('Thanks.'),
    { kind: 'event', event: { type: 'done', outcome: 'ok' } },
  ],
  result: { kind: 'ok', text: 'Thanks.', usage: used, denials: [] },
  ...given,
});

function serve(given: Partial<RecordedSession> = {}, signal?: AbortSignal) {
  const events: AgentEvent[] = [];
  const problems: RepriseError[] = [];
  let deltas = 0;
  const host: SessionHost = {
    onEvent: event => events.push(event),
    graceMs: 0,
    inheritEnv: {},
    marker: { REPRISE_RUN: randomUUID() },
    signal,
  };
  const session = new VcrSession({
    recording: recordingOf(given),
    host,
    applyDelta: async () => void deltas++,
    onProblem: error => void problems.push(error),
  });
  return { session, events, problems, deltas: () => deltas };
}

const textsOf = (events: readonly AgentEvent[]) =>
  events.map(event => (event.type === 'text' ? event.text : event.type));

describe('a replayed session', () => {
  it('repeats its question until it is answered, then continues', async () => {
    const { session, events, deltas } = serve();
    expect(await session.next()).toEqual({ kind: 'question', question });
    expect(await session.next()).toEqual({ kind: 'question', question });
    expect(textsOf(events)).toEqual(['May I?']);
    expect(await session.next({ kind: 'allow' })).toMatchObject({ kind: 'end', result: { text: 'Thanks.' } });
    expect(textsOf(events)).toEqual(['May I?', 'Thanks.', 'done']);
    expect(deltas()).toBe(0);
    await session.close();
    await session.close();
    expect(deltas()).toBe(1);
  });

  it('refuses an answer that differs from the recorded one', async () => {
    const { session, problems } = serve();
    await session.next();
    await expect(session.next({ kind: 'deny', message: 'no' })).rejects.toMatchObject({
      code: 'REPLAY_DIVERGED',
    });
    expect(problems.map(({ message }) => message)).toMatchInlineSnapshot(`
      [
        "coder.fix.0.jsonl: the answer to a question of the session (permission for Bash) has changed
        recorded: {"kind":"allow"}
        now:      {"kind":"deny","message":"no"}",
      ]
    `);
  });

  it('reports why the host ended it, and keeps its result when the host ends it again', async () => {
    const why = { kind: 'budget', message: 'it cost $0.50' } as const;
    const { session } = serve({ lines: [textLine('a')], why });
    void session.cancel();
    expect(await session.next()).toMatchObject({ result: { kind: 'ok' }, cut: why });
  });

  it('is cancelled if the host cancels it before its end', async () => {
    const { session, deltas } = serve({ lines: [textLine('a')] });
    await session.cancel();
    expect(await session.next()).toEqual({
      kind: 'end',
      nextKey: null,
      result: { kind: 'cancelled', usage: used, denials: [] },
    });
    await session.close();
    expect(deltas()).toBe(1);
  });

  it('has no effect if it is closed before its first turn', async () => {
    const { session, events, deltas } = serve();
    await session.close();
    expect(events).toEqual([]);
    expect(deltas()).toBe(0);
  });
});

describe('a session that was interrupted', () => {
  const interrupted = {
    cut: 0,
    lines: [textLine('a'), { kind: 'event', event: { type: 'done', outcome: 'cancelled' } }] as const,
    result: { kind: 'cancelled', usage: used, denials: [] } as const,
  };

  it('runs until it is cancelled', async () => {
    const abort = new AbortController();
    const { session, events, deltas } = serve(interrupted, abort.signal);
    const turn = session.next();
    expect(textsOf(events)).toEqual(['a']);
    abort.abort();
    expect(await turn).toMatchObject({ kind: 'end', result: { kind: 'cancelled', usage: used } });
    expect(textsOf(events)).toEqual(['a', 'done']);
    await session.close();
    expect(deltas()).toBe(1);
  });

  it('emits all events and applies all changes on close, even without a turn', async () => {
    const { session, events, deltas } = serve({ ...interrupted, lines: [...recordingOf().lines] });
    await session.close();
    expect(textsOf(events)).toEqual(['May I?', 'Thanks.', 'done']);
    expect(deltas()).toBe(1);
  });

  it('by a crash is cancelled with no usage', async () => {
    const { session } = serve({ cut: 0, lines: [textLine('a')], result: undefined });
    await session.cancel();
    expect(await session.next()).toMatchObject({ result: { kind: 'cancelled', usage: noUsage } });
  });
});
