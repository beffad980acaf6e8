import { describe, expect, test } from 'vitest';
import { commitMessage, workVariables } from './commands.ts';

describe('a commit message', () => {
  test('contains the unit and the first line that is not blank', () => {
    expect(commitMessage({ step: 'fix', attempt: 1 }, '\n  Repaired it.\nMore.')).toBe('fix: Repaired it.\n');
    expect(commitMessage({ step: 'a/b', worker: 2, attempt: 1 }, '')).toBe('a/b:2: work of the step\n');
  });

  test('is short and contains no control characters', () => {
    const message = commitMessage({ step: 'fix', attempt: 1 }, `\u001b[1m${'ö'.repeat(200)}\0`);
    expect([...message.trimEnd()]).toHaveLength(72);
    expect(message).toMatch(/^fix: \[1mö+…\n$/);
  });
});

describe('the environment of a step', () => {
  const unit = { step: 'fix', attempt: 1 };

  test('contains the run, the step and the workspace', () => {
    expect(workVariables({ runId: 'r', unit, cwd: '/w', steps: {} })).toEqual({
      REPRISE_RUN: 'r',
      REPRISE_STEP: 'fix',
      REPRISE_WORKSPACE: '/w',
    });
  });

  test('contains the artifacts of dependencies under valid variable names', () => {
    const view = { outcome: 'success', conclusion: 'success', outputs: null } as const;
    const steps = { 'my-plan': { ...view, artifacts: { 'to do (ä)': '/a/b.md' } }, other: view };
    expect(workVariables({ runId: 'r', unit, cwd: '/w', steps })).toMatchObject({
      REPRISE_ARTIFACT_MY_PLAN_TO_DO____: '/a/b.md',
    });
  });
});
