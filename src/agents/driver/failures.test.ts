import { expect, test } from 'vitest';
import { reportedFailure } from './failures.ts';

const errorOf = (message: string, status?: number) => {
  const verdict = reportedFailure({ kind: 'codex', message, status, now: 0 });
  return verdict.kind === 'failed' ? verdict.error : undefined;
};

test.each([
  ['Internal error: API Error: 529 Overloaded', undefined],
  ['We’re currently experiencing high demand, which may cause temporary errors.', undefined],
  ['unexpected status 503 Service Unavailable', undefined],
  ['stream disconnected before completion', undefined],
  ['Something broke', 500],
  ['Connection dropped (ECONNRESET)', undefined],
  ['Connection refused', undefined],
  ['Connection error.', undefined],
  ['TypeError: fetch failed', undefined],
])('%s: an outage, whose hint suggests a retry', (message, status) => {
  expect(errorOf(message, status)).toMatchObject({
    code: 'AGENT_UNAVAILABLE',
    hint: expect.stringContaining('add `retry`'),
  });
});

test.each([
  ['It found 500 files', undefined],
  ['the server is overloaded', 400],
])('%s: a failure, whose hint does not suggest a retry', (message, status) => {
  const error = errorOf(message, status);
  expect(error?.code).toBe('AGENT_FAILED');
  expect(error?.hint).not.toContain('add `retry`');
});
