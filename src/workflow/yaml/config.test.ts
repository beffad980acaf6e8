import { describe, expect, test } from 'vitest';
import { configJsonSchema, loadConfig } from './config.ts';

const load = (text: string) => loadConfig({ file: 'reprise.yaml', text });

describe('reprise.yaml', () => {
  test.each([
    ['', {}],
    ['# nothing yet\n', {}],
    ['runtime:\n  max_concurrent_workers: 4\n', { maxConcurrentWorkers: 4 }],
    ['runtime: { budget: { minutes: 120, cost_usd: 20 } }', { budgetMs: 7_200_000, budget: { costUsd: 20 } }],
    ['runtime: { budget: { tokens: 5000 } }', { budget: { tokens: 5000 } }],
    ['agents: { toy: { kind: command } }', { agents: { toy: { kind: 'command' } } }],
    ['worktrees: { setup: npm ci }', { worktrees: { setup: ['npm ci'], include: [] } }],
    [
      'worktrees: { setup: [npm ci, npm run build], include: [.env], folder: ../trees }',
      { worktrees: { setup: ['npm ci', 'npm run build'], include: ['.env'], folder: '../trees' } },
    ],
  ])('%j says %j', (text, expected) => {
    expect(load(text)).toEqual(expected);
  });

  test('is refused with everything that is wrong', () => {
    const text = 'runtime:\n  max_concurrent_worker: 4\n  budget: { minutes: 0 }\nagnets: {}\n';
    expect(() => load(text)).toThrowError(
      expect.objectContaining({
        code: 'CONFIG_INVALID',
        position: { file: 'reprise.yaml', line: 2, column: 3 },
      }),
    );
    expect(() => load(text)).toThrowErrorMatchingInlineSnapshot(`
      [RepriseError: reprise.yaml:2:3: unknown key \`max_concurrent_worker\`
         2 |   max_concurrent_worker: 4
           |   ^^^^^^^^^^^^^^^^^^^^^
        hint: did you mean \`max_concurrent_workers\`?

      reprise.yaml:3:22: \`runtime.budget.minutes\` must be more than 0, not \`0\`
         3 |   budget: { minutes: 0 }
           |                      ^

      reprise.yaml:4:1: unknown key \`agnets\`
         4 | agnets: {}
           | ^^^^^^
        hint: did you mean \`agents\`?]
    `);
  });

  test('is refused if it is not YAML', () => {
    expect(() => load('runtime: [')).toThrowError(expect.objectContaining({ code: 'CONFIG_INVALID' }));
  });

  test('has a JSON Schema', () => {
    expect(configJsonSchema()).toMatchObject({ type: 'object', additionalProperties: false });
  });
});
