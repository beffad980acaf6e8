import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { formatProblem } from '../../workflow/problems.ts';
import { parseTask, parseTasks } from './parse.ts';
import type { Task, TaskList } from './task.ts';

const parse = (text: string, name = 'fix-readme') =>
  parseTask({ file: `issues/${name}.md`, text, version: 'v1' });

function taskOf(text: string): Task {
  const parsed = parse(text);
  if (parsed.kind === 'task') return parsed.task;
  throw new Error(parsed.problems.map(formatProblem).join('\n'));
}

function problemsOf(text: string): string {
  const parsed = parse(text);
  return parsed.kind === 'task' ? '' : parsed.problems.map(formatProblem).join('\n');
}

describe('a task file', () => {
  test('needs no front matter: the task is ready and has priority P2', () => {
    expect(taskOf('# Fix the typo\n\nIn README.md.\n')).toEqual({
      id: 'fix-readme',
      title: 'Fix the typo',
      body: '# Fix the typo\n\nIn README.md.',
      priority: 'P2',
      state: 'ready',
      needs: [],
      file: 'issues/fix-readme.md',
      version: 'v1',
    });
  });

  test('sets fields in its front matter', () => {
    const text =
      '---\npriority: P0\nstate: draft\nneeds: [a, b]\nagent: coder\ntitle: "Fix: it"\n---\nDo it.\n';
    expect(taskOf(text)).toMatchObject({
      title: 'Fix: it',
      body: 'Do it.',
      priority: 'P0',
      state: 'draft',
      needs: ['a', 'b'],
      agent: 'coder',
    });
    expect(taskOf('---\nneeds: a\n---\nDo it.').needs).toEqual(['a']);
  });

  test('may leave keys empty', () => {
    expect(taskOf('---\npriority:\nneeds:\nagent:\n---\nDo it.')).toMatchObject({
      priority: 'P2',
      needs: [],
    });
    expect(taskOf('---\n# nothing yet\n---\nDo it.')).toMatchObject({ title: 'Do it.' });
    expect(taskOf('---\n---\nDo it.')).toMatchObject({ title: 'Do it.' });
    expect(taskOf('---\ntitle: Do it\n---')).toMatchObject({ title: 'Do it', body: '' });
  });

  test('may have a byte order mark and Windows line endings', () => {
    expect(taskOf('\uFEFF---\r\npriority: P1\r\n---\r\n# Fix\r\n\r\nall of it')).toMatchObject({
      priority: 'P1',
      title: 'Fix',
      body: '# Fix\n\nall of it',
    });
    expect(taskOf('\uFEFFFix it\r\n')).toMatchObject({ title: 'Fix it', body: 'Fix it' });
  });

  test.each([
    ['Fix the typo\n\n## Notes\nx', 'Fix the typo'],
    ['Some words before.\n\n# The heading #\n', 'The heading'],
    ['```sh\n# no heading\n```\n\n- Do this\n- and that', 'Do this'],
    ['```\nonly code\n```', 'only code'],
    ['***\n\nText', 'Text'],
    [`${'long '.repeat(50)}`, `${'long '.repeat(50).slice(0, 99).trim()}…`],
    ['修正する', '修正する'],
  ])('takes its title from the first heading, or else from the first line: %j', (text, title) => {
    expect(taskOf(text).title).toBe(title);
  });
});

describe('an invalid task file', () => {
  test('reports all problems at once, each with its position', () => {
    expect(
      problemsOf('---\npriority: p1\nstatus: ready\nneeds: [1]\nagent: [x]\n---\nDo it.'),
    ).toMatchInlineSnapshot(`
      "issues/fix-readme.md:2:11: \`priority\` must be P0, P1, P2 or P3, not \`p1\`
         2 | priority: p1
           |           ^^
        hint: did you mean \`P1\`?
      issues/fix-readme.md:3:1: unknown key \`status\`
         3 | status: ready
           | ^^^^^^
        hint: did you mean \`state\`?
      issues/fix-readme.md:4:9: \`needs[0]\` must be a string, not \`1\`
         4 | needs: [1]
           |         ^
        hint: put it in quotes: "1"
      issues/fix-readme.md:5:8: \`agent\` must be a string, not a list
         5 | agent: [x]
           |        ^^^"
    `);
    expect(problemsOf('---\nneeds: 12\n---\nDo it.')).toMatchInlineSnapshot(`
      "issues/fix-readme.md:2:8: \`needs\` must be a task name in quotes, or a list of them, not \`12\`
         2 | needs: 12
           |        ^^"
    `);
    expect(problemsOf('\uFEFF---\r\nstate: Done\r\n---\r\nDo it.')).toMatchInlineSnapshot(`
      "issues/fix-readme.md:2:8: \`state\` must be draft, ready, review, blocked or done, not \`Done\`
         2 | state: Done
           |        ^^^^
        hint: did you mean \`done\`?"
    `);
    expect(problemsOf('---\npriority: P1\npriority: P2\n---\nDo it.')).toMatchInlineSnapshot(`
      "issues/fix-readme.md:3:1: duplicate key \`priority\`
         3 | priority: P2
           | ^^^^^^^^
        hint: remove one of them"
    `);
    expect(problemsOf('---\ntitle: Fix: it\n---\nDo it.')).toMatchInlineSnapshot(`
      "issues/fix-readme.md:2:8: not valid YAML: nested mappings are not allowed in compact mappings
         2 | title: Fix: it
           |        ^
        hint: put text that contains \`: \` in quotes, or use a \`|\` block"
    `);
  });

  test('is reported if it is empty or its front matter is malformed', () => {
    expect(problemsOf('')).toMatchInlineSnapshot(`
      "issues/fix-readme.md:1:1: the task is empty
        hint: describe the task below the front matter, or remove the file"
    `);
    expect(problemsOf('---\npriority: P1\n---\n\n')).toMatchInlineSnapshot(`
      "issues/fix-readme.md:1:1: the task is empty
        hint: describe the task below the front matter, or remove the file"
    `);
    expect(problemsOf('---\npriority: P1\n\n# Fix it\n')).toMatchInlineSnapshot(`
      "issues/fix-readme.md:1:1: the front matter is not closed
         1 | ---
           | ^^^
        hint: add a line \`---\` after the last key"
    `);
    expect(problemsOf('---\nJust words\n---\nDo it.')).toMatchInlineSnapshot(`
      "issues/fix-readme.md:2:1: the front matter must be a map of keys and values
         2 | Just words
           | ^^^^^^^^^^
        hint: for example: \`priority: P1\`"
    `);
  });

  test('is reported under its display path', () => {
    const parsed = parseTask({ file: 'issues/a.md', displayFile: '../issues/a.md', text: '', version: 'v' });
    expect(parsed).toMatchObject({ problems: [{ task: 'a', position: { file: '../issues/a.md' } }] });
  });
});

test('any text gives a task or problems with positions', () => {
  const piece = fc.constantFrom(
    '---\n',
    '---\r\n',
    'state: ',
    'needs: ',
    'title: ',
    'done',
    '[a, ',
    ']',
    '\n',
    '  ',
    '# ',
    '&a ',
    '*a',
    '"',
    ': ',
    '| ',
    '\t',
    '```\n',
    '\uFEFF',
    '__proto__: 1\n',
  );
  const text = fc.oneof(
    fc.string(),
    fc.array(piece, { maxLength: 25 }).map(pieces => `---\n${pieces.join('')}`),
  );
  fc.assert(
    fc.property(text, given => {
      const parsed = parse(given);
      if (parsed.kind === 'task') expect(parsed.task.title).not.toBe('');
      else {
        expect(parsed.problems).not.toEqual([]);
        for (const { position, task } of parsed.problems)
          expect({ position, task }).toMatchObject({ position: {}, task: 'fix-readme' });
      }
    }),
    { numRuns: 1000 },
  );
});

describe('several task files', () => {
  const files = (texts: Readonly<Record<string, string>>) =>
    Object.entries(texts).map(([name, text]) => ({ file: `issues/${name}.md`, text, version: name }));
  const needing = (...needs: string[]) => `---\nneeds: [${needs.join(', ')}]\n---\nDo it.`;
  const formatted = ({ problems }: TaskList) => problems.map(formatProblem).join('\n');

  test('give tasks sorted by id, and the problems of the invalid ones', () => {
    const list = parseTasks(files({ b: 'Do b', a: 'Do a', c: '' }));
    expect(list.tasks.map(({ id }) => id)).toEqual(['a', 'b']);
    expect(list.problems).toMatchObject([{ task: 'c', position: { file: 'issues/c.md' } }]);
  });

  test('may need an invalid task or a known id', () => {
    const list = parseTasks(files({ a: needing('broken', 'gone'), broken: '' }), { known: ['gone'] });
    expect(list.problems.map(({ task }) => task)).toEqual(['broken']);
  });

  test('must need existing tasks other than themselves', () => {
    const list = parseTasks(
      files({ 'fix-readme': 'x', b: needing('fix-raedme', 'issues/fix-readme.md', 'b', 'zzz') }),
    );
    expect(list.tasks.map(({ id }) => id)).toEqual(['b', 'fix-readme']);
    expect(list.problems.every(({ task }) => task === 'b')).toBe(true);
    expect(formatted(list)).toMatchInlineSnapshot(`
      "issues/b.md:2:9: the task needs \`fix-raedme\`, but there is no such task
         2 | needs: [fix-raedme, issues/fix-readme.md, b, zzz]
           |         ^^^^^^^^^^
        hint: did you mean \`fix-readme\`?
      issues/b.md:2:21: the task needs \`issues/fix-readme.md\`, but there is no such task
         2 | needs: [fix-raedme, issues/fix-readme.md, b, zzz]
           |                     ^^^^^^^^^^^^^^^^^^^^
        hint: did you mean \`fix-readme\`?
      issues/b.md:2:43: the task needs itself
         2 | needs: [fix-raedme, issues/fix-readme.md, b, zzz]
           |                                           ^
        hint: remove it
      issues/b.md:2:46: the task needs \`zzz\`, but there is no such task
         2 | needs: [fix-raedme, issues/fix-readme.md, b, zzz]
           |                                              ^^^"
    `);
    expect(formatted(parseTasks(files({ a: '---\nneeds: ghost\n---\nDo it.' })))).toMatchInlineSnapshot(`
      "issues/a.md:2:8: the task needs \`ghost\`, but there is no such task
         2 | needs: ghost
           |        ^^^^^"
    `);
  });

  test('must not need each other in a cycle', () => {
    const list = parseTasks(
      files({ a: needing('x', 'b'), b: needing('c'), c: needing('a'), x: 'Do x', y: needing('a') }),
    );
    expect(formatted(list)).toMatchInlineSnapshot(`
      "issues/a.md:2:12: these tasks wait for each other: a needs b needs c needs a
         2 | needs: [x, b]
           |            ^
        hint: remove one of these dependencies"
    `);
  });

  test('are all rejected if they have the same id', () => {
    const list = parseTasks([
      { file: 'issues/a.md', text: 'One', version: '1' },
      { file: 'issues/more/a.md', text: '---\npriority: P1\n---\nTwo', version: '2' },
      { file: 'issues/b.md', text: needing('a'), version: '3' },
    ]);
    expect(list.tasks.map(({ id }) => id)).toEqual(['b']);
    expect(formatted(list)).toMatchInlineSnapshot(`
      "issues/a.md:1:1: another task has the same name: issues/more/a.md
        hint: rename all but one; until then none of them is dispatched
      issues/more/a.md:1:1: another task has the same name: issues/a.md
        hint: rename all but one; until then none of them is dispatched"
    `);
  });
});
