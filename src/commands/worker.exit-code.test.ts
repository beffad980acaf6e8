import { expect, it } from 'vitest';
import type { ErrorCode } from '../core/index.ts';
import type { EndReason, WorkerEnd } from '../worker/index.ts';
import { exitCodeOfWorkers } from './worker.ts';

const end = (
  errors: readonly ErrorCode[],
  reason: EndReason = 'idle',
  hasImpossibleTask = false,
): WorkerEnd => ({
  reason,
  tasks: errors.map(code => ({ task: 't', runId: 'r', error: { code, message: 'why' } })),
  hasImpossibleTask,
});

/** Outcomes by precedence, highest first. */
const outcomes: readonly [number, WorkerEnd][] = [
  [1, end([], 'stopped')],
  [4, end([], 'budget')],
  [4, end(['BUDGET_EXCEEDED'])],
  [1, end(['CHECK_FAILED'])],
  [1, end(['DEFINITION_INVALID'])],
  [6, end(['CANNOT_LAND'])],
  [2, end([], 'idle', true)],
  [3, end(['PERMISSION_DENIED'])],
  [0, { reason: 'idle', tasks: [{ task: 't', runId: 'r', error: undefined }], hasImpossibleTask: false }],
];

it.each(outcomes)('workers exit with %i if nothing that counts more happened: %j', (code, worst) => {
  const later = outcomes.slice(outcomes.findIndex(([, end]) => end === worst));
  expect(exitCodeOfWorkers([worst])).toBe(code);
  expect(exitCodeOfWorkers(later.map(([, end]) => end).toReversed())).toBe(code);
});
