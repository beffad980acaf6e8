import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { formatProblem } from '../../workflow/problems.ts';
import { parseListedTasks } from './parse.ts';

const parse = (printed: string) => parseListedTasks(printed, { command: 'tasks.sh' });
const listed = (...entries: readonly unknown[]) => parse(JSON.stringify(entries));
const formatted = (printed: string) => parse(printed).problems.map(formatProblem).join('\n');

describe('tasks that a command lists', () => {
  test('have the same fields as task files', () => {
    const { tasks, problems } = listed(
      {
        id: 'b',
        title: 'Do b',
        body: 'Now.\r\nAll of it.\n',
        priority: 'P0',
        state: 'draft',
        needs: 'a',
        agent: 'coder',
      },
      { id: 'a', body: '# Do a' },
    );
    expect(problems).toEqual([]);
    expect(tasks).toMatchObject([
      { id: 'a', title: 'Do a', body: '# Do a', priority: 'P2', state: 'ready', needs: [] },
      {
        id: 'b',
        title: 'Do b',
        body: 'Now.\nAll of it.',
        priority: 'P0',
        state: 'draft',
        needs: ['a'],
        agent: 'coder',
      },
    ]);
    expect(tasks[0]).not.toHaveProperty('file');
  });

  test('may have numeric ids and null fields', () => {
    expect(
      listed({ id: 7, title: 'Seven', priority: null, needs: null, agent: null, body: null }).tasks,
    ).toMatchObject([{ id: '7', title: 'Seven', body: '', priority: 'P2' }]);
  });

  test('may be printed as JSON lines, and the list may be empty', () => {
    expect(parse('{"id":"a","title":"A"}\r\n\n{"id":"b","title":"B"}\n').tasks).toHaveLength(2);
    expect(parse('{"id":"a","title":"A"}').tasks).toHaveLength(1);
    for (const nothing of ['', '\n', '[]']) expect(parse(nothing)).toEqual({ tasks: [], problems: [] });
  });

  test('are rejected with the number of the first invalid line', () => {
    expect(formatted('[\n{"id": "a"},\n{"id": b}\n]\n')).toContain('line 3 is `{"id": b}`');
  });

  test('have a version that changes with their content only', () => {
    const versionOf = (entry: object) => listed(entry).tasks[0]?.version;
    const version = versionOf({ id: 'a', title: 'A' });
    expect(version).toMatch(/^[0-9a-f]{64}$/);
    expect(versionOf({ title: 'A', id: 'a' })).toBe(version);
    expect(versionOf({ id: 'a', title: 'A', priority: 'P2', needs: [], agent: null })).toBe(version);
    for (const other of [
      { priority: 'P1' },
      { title: 'B' },
      { body: 'x' },
      { agent: 'x' },
      { needs: ['x'] },
      { state: 'draft' },
    ])
      expect(versionOf({ id: 'a', title: 'A', ...other })).not.toBe(version);
  });
});

describe('a list with problems', () => {
  test('is rejected if it is not JSON or not a list', () => {
    expect(
      formatted('Loading tasks from the tracker, please wait a moment for them...\n'),
    ).toMatchInlineSnapshot(`
      "\`tasks.sh\` did not print JSON: line 1 is \`Loading tasks from the tracker, please wait a moment for the…\`
        hint: print a JSON array of tasks and nothing else; write messages to stderr"
    `);
    expect(formatted('[{"id": "a"')).toMatchInlineSnapshot(`
      "\`tasks.sh\` did not print JSON: line 1 is \`[{"id": "a"\`
        hint: print a JSON array of tasks and nothing else; write messages to stderr"
    `);
    expect(formatted('{"tasks": [], "total": 0}')).toMatchInlineSnapshot(`
      "\`tasks.sh\` did not print a list, but an object with the keys tasks, total
        hint: print a JSON array of tasks and nothing else; write messages to stderr"
    `);
    expect(formatted('"words"')).toMatchInlineSnapshot(`
      "\`tasks.sh\` did not print a list, but \`"words"\`
        hint: print a JSON array of tasks and nothing else; write messages to stderr"
    `);
    expect(formatted('Loading\n{"id":"a","title":"A"}\n12\n')).toMatchInlineSnapshot(`
      "\`tasks.sh\`, line 1: not JSON: \`Loading\`
        hint: print a JSON array of tasks and nothing else; write messages to stderr
      \`tasks.sh\`, line 3: a task must be an object, not \`12\`"
    `);
  });

  test('keeps the valid tasks and reports each invalid entry', () => {
    const { tasks, problems } = listed(
      { title: 'nameless' },
      { number: 7, title: 'x' },
      { id: ' a ', title: 'x' },
      { id: 'two\nlines', title: 'x' },
      { id: 'typo', title: 'x', priorty: 'P1', state: 'open' },
      { id: 'mute' },
      { id: 'list', body: [] },
      { id: 'good', title: 'x', needs: ['mute', 'goood'] },
      'words',
      { id: 'twice', title: 'x' },
      { id: 'twice', title: 'y' },
    );
    expect(tasks.map(({ id }) => id)).toEqual(['good']);
    expect(problems.map(formatProblem).join('\n')).toMatchInlineSnapshot(`
      "\`tasks.sh\`, entry 1: the task has no \`id\`
        hint: for example: {"id": "fix-readme", "title": "Fix the typo", "priority": "P1"}
      \`tasks.sh\`, entry 2: the task has no \`id\`
        hint: rename \`number\` to \`id\`
      \`tasks.sh\`, entry 3: \`" a "\` cannot be the \`id\` of a task
        hint: use one line of text
      \`tasks.sh\`, entry 4: \`"two\\nlines"\` cannot be the \`id\` of a task
        hint: use one line of text
      \`tasks.sh\` lists \`typo\`: \`state\` must be draft, ready, review, blocked or done, not \`open\`
      \`tasks.sh\` lists \`typo\`: unknown key \`priorty\`
        hint: did you mean \`priority\`?
      \`tasks.sh\` lists \`mute\`: it has neither a \`title\` nor a \`body\`
      \`tasks.sh\` lists \`list\`: \`body\` must be text
      \`tasks.sh\`, entry 9: a task must be an object, not \`"words"\`
      \`tasks.sh\` lists \`twice\`: another task has the same name
        hint: rename all but one; until then none of them is dispatched
      \`tasks.sh\` lists \`twice\`: another task has the same name
        hint: rename all but one; until then none of them is dispatched
      \`tasks.sh\` lists \`good\`: the task needs \`goood\`, but there is no such task
        hint: did you mean \`good\`?"
    `);
    expect(problems.map(({ task }) => task ?? '-')).toMatchInlineSnapshot(`
      [
        "-",
        "-",
        "-",
        "-",
        "typo",
        "typo",
        "mute",
        "list",
        "-",
        "twice",
        "twice",
        "good",
      ]
    `);
  });
});

test('any text gives a list of tasks or problems', () => {
  const json = fc.oneof(
    fc.json(),
    fc.array(fc.jsonValue()).map(values => values.map(value => JSON.stringify(value)).join('\n')),
  );
  fc.assert(
    fc.property(fc.oneof(fc.string(), json), printed => {
      const { tasks, problems } = parse(printed);
      if (printed.trim() !== '' && printed.trim() !== '[]' && tasks.length === 0)
        expect(problems).not.toEqual([]);
    }),
    { numRuns: 1000 },
  );
});
