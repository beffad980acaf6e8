import type { ModelScript, WordsIn } from '../../support/fake-model/script.ts';
import { folderToldIn } from '../../support/fake-model/tool-calls.ts';
import { commitsOnMain, meetingOf } from './moments.ts';

/** Maps the prompts of workers to `<agent> on <task>` or `conflict of <commit>`. */
export const wordsOfWorkers: WordsIn = prompt => [
  ...[...prompt.matchAll(/You are the agent `([^`]+)`.*?## The task `([^`]+)`/gs)].map(
    ([, agent, task]) => `${agent} on ${task}`,
  ),
  ...[...prompt.matchAll(/Your work cannot land yet:.*?the commit “([^”]+)”/gs)].map(
    ([, subject]) => `conflict of ${subject}`,
  ),
];

export const solvingTheConflict = 'conflict of Make the greeting polite';

const parserTest = `import assert from 'node:assert';
import { test } from 'node:test';
import { parse } from '../src/parse.js';

test('splits at commas', () => assert.deepEqual(parse('a,b'), ['a', 'b']));
`;

/** Replies of the model in the cases that are recorded with Claude Code. Functions, because each recording needs its own promises. */
export const dialogues: Readonly<Record<string, () => ModelScript>> = {
  'workers/worker_basic': () => ({
    'implement on fix-greeting': [
      { say: 'I look at the greeting.', actions: [{ read: 'greeting.txt' }] },
      { actions: [{ edit: { path: 'greeting.txt', from: 'Helo', to: 'Hello' } }] },
      { say: 'The greeting is spelled right now.\n<next>\nagent: review\nfocus: spelling\n</next>' },
    ],
    'review on fix-greeting': [
      { say: 'I look at what was done.', actions: [{ read: 'greeting.txt' }] },
      { say: 'It is as it should be.\n<next>land</next>' },
    ],
  }),

  'workers/concurrent_workers': () => {
    const both = meetingOf(2);
    return {
      'fix-readme on fix-readme': [
        { say: 'I look at the title.', actions: [{ read: 'README.md' }], after: () => both('fix-readme') },
        { actions: [{ edit: { path: 'README.md', from: 'Exampel', to: 'Example' } }] },
        { actions: [{ run: 'git diff --stat' }] },
        { say: 'The title is spelled right now.\n<next>land</next>' },
      ],
      'add-tests on add-tests': [
        { say: 'I look at the parser.', actions: [{ read: 'src/parse.js' }], after: () => both('add-tests') },
        { actions: [{ write: { path: 'test/parse.test.js', content: parserTest } }] },
        { actions: [{ run: 'git status --short' }] },
        { say: 'A test is there.\n<next>land</next>' },
      ],
    };
  },

  'workers/landing_conflict': () => {
    const both = meetingOf(2);
    const change = (to: string) => ({ edit: { path: 'greeting.txt', from: 'Hello, world!', to } });
    return {
      'implement on casual': [
        { actions: [{ read: 'greeting.txt' }], after: () => both('casual') },
        { actions: [change('Hi!')] },
        { say: 'The greeting is casual now.\n<next>land</next>' },
      ],
      'implement on polite': [
        { actions: [{ read: 'greeting.txt' }], after: () => both('polite') },
        { actions: [change('Good morning!')] },
        {
          say: 'The greeting is polite now.\n<next>land</next>',
          // Wait until the other worker has landed, so that this work conflicts.
          after: ({ told }) => commitsOnMain(folderToldIn(told) ?? '.', 2),
        },
      ],
      [solvingTheConflict]: [
        { say: 'Another task made the greeting casual.', actions: [{ read: 'greeting.txt' }] },
        { actions: [{ write: { path: 'greeting.txt', content: 'Hi, and good morning!\n' } }] },
        { say: 'The greeting is casual and polite now.\n<next>land</next>' },
      ],
    };
  },
};
