import { expect, test } from 'vitest';
import { reportedFailure } from './failures.ts';

const hintOf = (message: string, status?: number): string | undefined => {
  const verdict = reportedFailure({ kind: 'codex', message, status, now: 0 });
  return verdict.kind === 'failed' ? verdict.error.hint : undefined;
};

test.each([
  ['Internal error: API Error: 529 Overloaded', undefined],
  ['We’re currently experiencing high demand, which may cause temporary errors.', undefined],
  ['unexpected status 503 Service Unavailable', undefined],
  ['stream disconnected before completion', undefined],
  ['Something broke', 500],
])('%s: the hint suggests a retry', (message, status) => {
  expect(hintOf(message, status)).toContain('add `retry`');
});

test.each([
  ['It found 500 files', undefined],
  ['the server is overloaded', 400],
])('%s: the hint does not suggest a retry', (message, status) => {
  expect(hintOf(message, status)).not.toContain('add `retry`');
});
