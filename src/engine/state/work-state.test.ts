import { expect, test } from 'vitest';
import type { Usage } from '../../agents/session.ts';
import { type StepWorkEvent, WorkState } from './work-state.ts';

const used = (costUsd: number): Usage => ({ inputTokens: 10, outputTokens: 1, cachedTokens: 0, costUsd });
const event = (type: StepWorkEvent['type'], data: object): StepWorkEvent =>
  ({
    seq: 1,
    runId: 'r',
    at: '2026-01-01T00:00:00.000Z',
    step: 'work',
    type,
    data,
  }) as unknown as StepWorkEvent;
const begun = (number: number, sessionId?: string) =>
  event('session.started', { agent: 'coder', kind: 'claude', number, ...(sessionId ? { sessionId } : {}) });
const ended = (costUsd: number) => event('session.ended', { outcome: 'ok', usage: used(costUsd) });

const after = (...events: readonly StepWorkEvent[]): WorkState => {
  const state = new WorkState();
  for (const each of events) state.apply(each);
  return state;
};

test('the last session adds up the usage of all its parts', () => {
  const { lastSession } = after(begun(0, 'a'), ended(1), begun(1, 'a'), ended(2));
  expect(lastSession).toMatchObject({ sessionId: 'a', number: 1, usage: { inputTokens: 20, costUsd: 3 } });
});

test('the last session does not count the usage of other sessions or of sessions without an id', () => {
  const { lastSession } = after(begun(0, 'a'), ended(1), begun(1, 'b'), ended(2), begun(2), ended(4));
  expect(lastSession).toMatchObject({ sessionId: 'b', usage: { inputTokens: 10, costUsd: 2 } });
});

const toLand = event('landing.started', { onto: 'main', branch: 'b' });
const refused = event('landing.ended', { onto: 'main', branch: 'b', outcome: 'verify-failed' });

test('a rework counts once its result is landed, however many sessions it took', () => {
  expect(after(toLand, refused).reworks).toBe(0);
  expect(after(toLand, refused, begun(0, 'a'), ended(1)).reworks).toBe(0);
  expect(after(toLand, refused, begun(0, 'a'), ended(1), begun(1, 'a'), ended(1), toLand).reworks).toBe(1);
  const twice = after(
    toLand,
    refused,
    begun(0, 'a'),
    ended(1),
    toLand,
    refused,
    begun(1, 'a'),
    ended(1),
    toLand,
  );
  expect(twice.reworks).toBe(2);
});

test('a rework counts even if the start of the landing is not recorded', () => {
  expect(after(refused, begun(0, 'a'), ended(1), refused).reworks).toBe(1);
});

test('an interrupted rework does not count, whether its session ended or not', () => {
  const duringSession = after(toLand, refused, begun(0, 'a'));
  const beforeSave = after(toLand, refused, begun(0, 'a'), ended(1));
  for (const state of [duringSession, beforeSave]) {
    state.interrupt();
    for (const each of [toLand, refused]) state.apply(each);
    expect(state.reworks).toBe(0);
  }
});

test('a rework that a rate limit ended does not count, and a new attempt starts counting from zero', () => {
  const limited = event('session.ended', { outcome: 'limit', usage: used(1) });
  expect(after(toLand, refused, begun(0, 'a'), limited, toLand).reworks).toBe(0);
  const state = after(toLand, refused, begun(0, 'a'), ended(1), toLand);
  state.newAttempt();
  expect(state.reworks).toBe(0);
});
