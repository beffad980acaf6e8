import { describe, expect, test } from 'vitest';
import { type AnyStep, stepKey } from './handle.ts';
import { approve, step } from './index.ts';
import { scopeOf } from './test-support.ts';

const total = step('total', { run: () => 12 });

function requestOf(handle: AnyStep) {
  const { body } = handle[stepKey].model;
  if (body.kind !== 'approve') throw new Error(`expected an approval, got ${body.kind}`);
  return body.request;
}

describe('an approval', () => {
  test('asks to approve or reject by default', () => {
    const gate = approve('gate', { message: 'Land it?' });
    expect(requestOf(gate)(scopeOf({}))).toEqual({ message: 'Land it?', choices: ['approve', 'reject'] });
    expect(gate[stepKey].model).toMatchObject({ optional: false, needs: [], timeout: {} });
  });

  test('computes its message from its dependencies and offers its own choices', () => {
    const gate = approve('gate', {
      after: { total },
      message: ({ total }) => `Pay ${total}?`,
      choices: ['now', 'later'],
    });
    expect(requestOf(gate)(scopeOf({ total: 3 }))).toEqual({ message: 'Pay 3?', choices: ['now', 'later'] });
  });

  test('has a timeout for the whole step', () => {
    expect(approve('gate', { message: 'Go?', timeout: '2d' })[stepKey].model.timeout).toEqual({
      stepMs: 172_800_000,
    });
  });
});
