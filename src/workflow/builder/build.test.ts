import { describe, expect, test } from 'vitest';
import { type AnyStep, stepKey } from './handle.ts';
import { approve, maybe, shell, step, workflow } from './index.ts';

const fingerprint = (handle: AnyStep) => handle[stepKey].model.fingerprint;

const a = step('a', { run: () => 1 });
const b = step('b', { run: () => 1 });
const run = () => 1;

describe('the fingerprint of a step', () => {
  test('is the same for every spelling of the same definition', () => {
    const one = step('x', { after: { a, b }, retry: 3, timeout: '1m', run });
    const same = step('x', {
      run,
      optional: false,
      timeout: { attempt: 60_000 },
      retry: { attempts: 3 },
      after: { b, a },
    });
    expect(fingerprint(same)).toBe(fingerprint(one));
    const variables = shell('x', { run: 'echo', env: { A: 1, B: 2 } });
    expect(fingerprint(shell('x', { run: 'echo', env: { B: 2, A: 1 } }))).toBe(fingerprint(variables));
  });

  test('changes with everything that defines a function step', () => {
    const variants = [
      step('x', { run }),
      step('y', { run }),
      step('x', { run: () => 2 }),
      step('x', { run, after: { a } }),
      step('x', { run, after: { a: b } }),
      step('x', { run, after: { other: a } }),
      step('x', { run, after: { a: maybe(a) } }),
      step('x', { run, if: () => true }),
      step('x', { run, if: () => false }),
      step('x', { run, optional: true }),
      step('x', { run, retry: 2 }),
      step('x', { run, retry: 3 }),
      step('x', { run, retry: { attempts: 2, backoff: 5 } }),
      step('x', { run, retry: { attempts: 2, on: ['TIMEOUT'] } }),
      step('x', { run, retry: { attempts: 2, on: () => true } }),
      step('x', { run, timeout: 5 }),
      step('x', { run, timeout: { step: 5 } }),
    ];
    expect(new Set(variants.map(fingerprint)).size).toBe(variants.length);
  });

  test('changes with everything that defines other kinds of steps', () => {
    const child = (total: number) => workflow('child', { steps: [shell('s', { run: `echo ${total}` })] });
    const variants = [
      shell('x', { run: 'echo' }),
      shell('x', { run: 'echo 1' }),
      shell('x', { run: 'echo', shell: 'sh' }),
      shell('x', { run: 'echo', workingDirectory: 'web' }),
      shell('x', { run: 'echo', env: { A: 1 } }),
      shell('x', { run: 'echo', env: () => ({ A: 1 }) }),
      approve('x', { message: 'Go?' }),
      approve('x', { message: 'Stop?' }),
      approve('x', { message: () => 'Go?' }),
      approve('x', { message: 'Go?', choices: ['yes', 'no'] }),
      step('x', { uses: child(1) }),
    ];
    expect(new Set(variants.map(fingerprint)).size).toBe(variants.length);
    // The steps of a child have their own fingerprints.
    expect(fingerprint(step('x', { uses: child(2) }))).toBe(fingerprint(step('x', { uses: child(1) })));
  });
});
