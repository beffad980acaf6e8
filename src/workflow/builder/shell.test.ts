import { describe, expect, test } from 'vitest';
import { z } from 'zod';
import { type AnyStep, stepKey } from './handle.ts';
import { shell, step } from './index.ts';
import { scopeOf } from './test-support.ts';

const title = step('title', { run: () => '"; rm -rf /' });

function runBody(handle: AnyStep) {
  const { body } = handle[stepKey].model;
  if (body.kind !== 'run') throw new Error(`expected a command, got ${body.kind}`);
  return body;
}

describe('a shell step', () => {
  test('keeps its script as written and passes values as text in the environment', () => {
    const greet = shell('greet', {
      after: { title },
      input: z.object({ times: z.number() }),
      run: 'echo "$TITLE"',
      env: ({ title }, { times }) => ({ TITLE: title, TIMES: times, LOUD: true }),
    });
    expect(runBody(greet).command(scopeOf({ title: '"; rm -rf /' }, { times: 3 }))).toEqual({
      script: 'echo "$TITLE"',
      shell: 'bash',
      env: { TITLE: '"; rm -rf /', TIMES: '3', LOUD: 'true' },
    });
  });

  test('accepts a plain environment, a different shell and a folder', () => {
    const build = shell('build', { run: 'make', env: { JOBS: 4 }, shell: 'sh', workingDirectory: 'native' });
    expect(runBody(build).command(scopeOf({}))).toEqual({
      script: 'make',
      shell: 'sh',
      env: { JOBS: '4' },
      workingDirectory: 'native',
    });
  });

  test('validates its outputs against a schema', () => {
    const size = shell('size', { run: 'du', output: z.object({ bytes: z.coerce.number() }) });
    expect(runBody(size).parseOutput?.({ bytes: '12' })).toEqual({ bytes: 12 });
    expect(() => runBody(size).parseOutput?.({ bytes: 'many' })).toThrowErrorMatchingInlineSnapshot(
      `[RepriseError: output.bytes: Invalid input: expected number, received NaN]`,
    );
    expect(runBody(shell('plain', { run: 'du' })).parseOutput).toBeUndefined();
  });
});
