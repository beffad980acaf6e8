import { describe, expect, test } from 'vitest';
import { configJsonSchema, loadConfig } from './config.ts';
import { defaultWorkerSettings } from './config-workers.ts';

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
    ['tasks: { folder: ./todo/open/ }', { tasks: { kind: 'folder', folder: 'todo/open' } }],
    ['tasks: { command: scripts/tasks.sh }', { tasks: { kind: 'command', command: 'scripts/tasks.sh' } }],
    ['tasks: {}', { tasks: { kind: 'folder', folder: 'issues' } }],
    ['workers: {}', { workers: defaultWorkerSettings }],
    ['workers: { resolve: 0 }', { workers: { ...defaultWorkerSettings, resolve: 0 } }],
    ['workers: { branch: feat/ünï }', { workers: { ...defaultWorkerSettings, branch: 'feat/ünï' } }],
  ])('%j is loaded as %j', (text, expected) => {
    expect(load(text)).toEqual(expected);
  });

  test('is rejected with all of its problems', () => {
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

  test('contains the settings of workers', () => {
    const text = `workers:
  branch: develop
  agent: coder
  dispatch: agent
  land: pr
  remote: upstream
  pr_command: gh pr create --fill --head "$REPRISE_BRANCH"
  verify: npm test
  resolve: 1
  corrections: 3
  max_agents: 4
`;
    expect(load(text).workers).toEqual({
      branch: 'develop',
      agent: 'coder',
      dispatch: 'agent',
      land: 'pr',
      remote: 'upstream',
      prCommand: 'gh pr create --fill --head "$REPRISE_BRANCH"',
      verify: 'npm test',
      resolve: 1,
      corrections: 3,
      maxAgents: 4,
    });
  });

  test('is rejected with all problems of tasks and workers', () => {
    const text = `tasks: { folder: ../issues, command: x, comand: y }
workers:
  branch: feat..x
  agent: no way
  dispatch: agnet
  land: trunk
  verify: ""
  resolve: -1
  corrections: 1.5
  max_agents: 0
  prcommand: x
`;
    expect(() => load(text)).toThrowErrorMatchingInlineSnapshot(`
      [RepriseError: reprise.yaml:1:18: \`tasks.folder\` must be a folder inside the repository, relative to its root
         1 | tasks: { folder: ../issues, command: x, comand: y }
           |                  ^^^^^^^^^

      reprise.yaml:1:29: \`tasks.folder\` and \`tasks.command\` cannot be combined
         1 | tasks: { folder: ../issues, command: x, comand: y }
           |                             ^^^^^^^
        hint: remove one of them

      reprise.yaml:1:41: unknown key \`comand\`
         1 | tasks: { folder: ../issues, command: x, comand: y }
           |                                         ^^^^^^
        hint: did you mean \`command\`?

      reprise.yaml:3:11: \`workers.branch\` is not a valid branch name
         3 |   branch: feat..x
           |           ^^^^^^^

      reprise.yaml:4:10: \`workers.agent\` must be an identifier (letters, digits, \`_\` and \`-\`, starting with a letter or \`_\`), not \`no way\`
         4 |   agent: no way
           |          ^^^^^^

      reprise.yaml:5:13: \`workers.dispatch\` must be built-in or agent, not \`agnet\`
         5 |   dispatch: agnet
           |             ^^^^^
        hint: did you mean \`agent\`?

      reprise.yaml:6:9: \`workers.land\` must be main, branch or pr, not \`trunk\`
         6 |   land: trunk
           |         ^^^^^
        hint: to land on a branch other than \`main\`, set \`workers.branch\`

      reprise.yaml:7:11: \`workers.verify\` must not be empty
         7 |   verify: ""
           |           ^^

      reprise.yaml:8:12: \`workers.resolve\` must be at least 0, not \`-1\`
         8 |   resolve: -1
           |            ^^

      reprise.yaml:9:16: \`workers.corrections\` must be a whole number, not \`1.5\`
         9 |   corrections: 1.5
           |                ^^^

      reprise.yaml:10:15: \`workers.max_agents\` must be at least 1, not \`0\`
        10 |   max_agents: 0
           |               ^

      reprise.yaml:11:3: unknown key \`prcommand\`
        11 |   prcommand: x
           |   ^^^^^^^^^
        hint: did you mean \`pr_command\`?]
    `);
  });

  test.each([
    ['tasks: issues', '`tasks` must be a map, not `issues`', 'for example: tasks: { folder: issues }'],
    ['workers: 2', '`workers` must be a map, not `2`', 'for example: workers: { verify: npm test }'],
    [
      'tasks: { folder: a, command: b }',
      '`tasks.folder` and `tasks.command` cannot be combined',
      'remove one of them',
    ],
    [
      'workers: { land: pr }',
      '`workers.land: pr` requires `workers.pr_command`',
      'for example: pr_command: gh pr view "$REPRISE_BRANCH" || gh pr create --fill --head "$REPRISE_BRANCH"',
    ],
  ])('with %j is rejected with a hint', (text, message, hint) => {
    expect(() => load(text)).toThrowError(`: ${message}\n`);
    expect(() => load(text)).toThrowError(`hint: ${hint}`);
  });

  test.each(['/abs', '.', './', 'a/../b', '..', 'a\\\\b', '.git/x'])(
    'cannot name %j as the folder of tasks',
    folder => {
      expect(() => load(`tasks: { folder: "${folder}" }`)).toThrowError(
        'must be a folder inside the repository, relative to its root',
      );
    },
  );

  test.each(['-x', 'a b', 'a..b', 'a.lock', '.a', 'a/', 'a//b', 'a@{b', 'a~1', 'a^', 'a:b', '@', 'a.'])(
    'cannot name %j as the target branch',
    branch => {
      expect(() => load(`workers: { branch: "${branch}" }`)).toThrowError('is not a valid branch name');
    },
  );

  test('is rejected if it is not YAML', () => {
    expect(() => load('runtime: [')).toThrowError(expect.objectContaining({ code: 'CONFIG_INVALID' }));
  });

  test('has a JSON Schema', () => {
    expect(configJsonSchema()).toMatchObject({ type: 'object', additionalProperties: false });
  });
});
