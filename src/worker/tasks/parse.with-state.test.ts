import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { parseTask, withState } from './parse.ts';
import { type Task, type TaskState, taskStates } from './task.ts';

describe('setting the state of a task', () => {
  test.each([
    ['---\nstate: ready\n---\nDo it.', '---\nstate: done\n---\nDo it.'],
    [
      '---\n# why\nstate: "ready"  # now\npriority: P1\n---\n\nDo it.\n',
      '---\n# why\nstate: done  # now\npriority: P1\n---\n\nDo it.\n',
    ],
    [
      '\uFEFF---\r\npriority: P1\r\nstate: ready\r\n---\r\nDo it.',
      '\uFEFF---\r\npriority: P1\r\nstate: done\r\n---\r\nDo it.',
    ],
    ['---\nstate:\npriority: P1\n---\nDo it.', '---\nstate: done\npriority: P1\n---\nDo it.'],
    ['---\nstate: # later\n---\nDo it.', '---\nstate: done # later\n---\nDo it.'],
    ['---\nstate: >-\n  ready\npriority: P1\n---\nDo it.', '---\nstate: done\npriority: P1\n---\nDo it.'],
    [
      '---\r\nstate: >-\r\n  ready\r\npriority: P1\r\n---\r\nDo it.',
      '---\r\nstate: done\r\npriority: P1\r\n---\r\nDo it.',
    ],
    ['---\nstate:\n  ready\n---\nDo it.', '---\nstate:\n  done\n---\nDo it.'],
    ['---\n{ state: ready, priority: P1 }\n---\nDo it.', '---\n{ state: done, priority: P1 }\n---\nDo it.'],
    ['---\n{ priority: P1, state }\n---\nDo it.', '---\n{ priority: P1, state: done }\n---\nDo it.'],
    ['---\n"state": ready\n---\nDo it.', '---\n"state": done\n---\nDo it.'],
    ['---\ntitle: &t ready\nstate: *t\n---\nDo it.', '---\ntitle: &t ready\nstate: done\n---\nDo it.'],
  ])('replaces an existing state: %j', (text, expected) => {
    expect(withState(text, 'done')).toBe(expected);
  });

  test.each([
    ['---\npriority: P1\n---\nDo it.', '---\npriority: P1\nstate: done\n---\nDo it.'],
    [
      '---\r\npriority: P1 # high\r\n---  \r\nDo it.',
      '---\r\npriority: P1 # high\r\nstate: done\r\n---  \r\nDo it.',
    ],
    ['---\n  priority: P1\n---\nDo it.', '---\n  priority: P1\n  state: done\n---\nDo it.'],
    ['---\ntitle: |\n  Do it\n\n---\n', '---\ntitle: |\n  Do it\n\nstate: done\n---\n'],
    ['---\n# nothing\n---\nDo it.', '---\n# nothing\nstate: done\n---\nDo it.'],
    ['---\n---\nstate: ready', '---\nstate: done\n---\nstate: ready'],
    ['---\n{ priority: P1 }\n---\nDo it.', '---\n{ state: done, priority: P1 }\n---\nDo it.'],
    ['---\n{}\n---\nDo it.', '---\n{ state: done}\n---\nDo it.'],
  ])('adds a missing state: %j', (text, expected) => {
    expect(withState(text, 'done')).toBe(expected);
  });

  test.each([
    ['Do it.', '---\nstate: done\n---\n\nDo it.'],
    ['\uFEFF# Do it\r\n', '\uFEFF---\r\nstate: done\r\n---\r\n\r\n# Do it\r\n'],
    ['', '---\nstate: done\n---\n\n'],
  ])('adds missing front matter: %j', (text, expected) => {
    expect(withState(text, 'done')).toBe(expected);
  });

  test.each([
    '---\nstate: ready\n\nnever closed',
    '---\nstate: [\n---\nDo it.',
    '---\njust words\n---\nDo it.',
    '---\nstate: ready\nstate: draft\n---\nDo it.',
    '---\npriority: P1\n...\n---\nDo it.',
    '---\nstate: &s ready\ntitle: *s\n---\nDo it.',
  ])('fails on broken front matter: %j', text => {
    expect(withState(text, 'done')).toBeUndefined();
  });
});

describe('setting the state of any task', () => {
  const lines = fc
    .subarray(
      [
        'priority: P0',
        'state: ready',
        "state: 'blocked' # by Anna",
        'needs: [a, b]',
        'needs:\n  - a\n  # and\n  - b',
        'agent: coder   # the best',
        'title: "x: \\"y\\""',
        'title: |\n  two\n  lines\n',
        '# state: draft',
        '',
      ],
      { minLength: 0 },
    )
    .chain(chosen => fc.shuffledSubarray(chosen, { minLength: chosen.length }))
    .filter(chosen =>
      ['state', 'needs', 'title'].every(key => chosen.filter(line => line.startsWith(key)).length < 2),
    );
  const file = fc
    .record({
      mark: fc.boolean(),
      crlf: fc.boolean(),
      front: fc.option(lines),
      body: fc.string(),
      closing: fc.constantFrom('---', '--- '),
    })
    .map(({ mark, crlf, front, body, closing }) => {
      const head = front === null ? '' : ['---', ...front, closing, ''].join('\n');
      const text = `${head}Do it. ${body.replaceAll('\r', '')}`;
      return `${mark ? '\uFEFF' : ''}${crlf ? text.replaceAll('\n', '\r\n') : text}`;
    });
  const parsed = (text: string): Task => {
    const result = parseTask({ file: 'issues/a.md', text, version: 'v' });
    if (result.kind === 'task') return result.task;
    throw new Error(JSON.stringify([text, result.problems]));
  };
  const state = fc.constantFrom<TaskState>(...taskStates);

  test('changes nothing but the state', () => {
    fc.assert(
      fc.property(file, state, (text, wanted) => {
        const edited = withState(text, wanted) ?? '';
        expect(parsed(edited)).toEqual({ ...parsed(text), state: wanted });
      }),
      { numRuns: 300 },
    );
  });

  test('keeps every other line', () => {
    fc.assert(
      fc.property(file, state, (text, wanted) => {
        const edited = (withState(text, wanted) ?? '').split('\n');
        const kept = text
          .split('\n')
          .filter(line => !/^\uFEFF?(state:|---)/.test(line) && !line.startsWith('\uFEFF'));
        expect(edited).toEqual(expect.arrayContaining(kept));
        expect(edited.length - text.split('\n').length).toBeOneOf([0, 1, 4]);
      }),
      { numRuns: 200 },
    );
  });

  test('is reversible byte for byte', () => {
    fc.assert(
      fc.property(file, state, state, (text, first, second) => {
        const once = withState(text, first) ?? '';
        expect(withState(withState(once, second) ?? '', first)).toBe(once);
      }),
    );
  });

  test('never throws', () => {
    const piece = fc.constantFrom(
      '---\n',
      'state: ',
      'state',
      '? ',
      '\n',
      ' ',
      '&a ',
      '*a',
      '{',
      '}',
      '[',
      '"',
      '|\n',
      '- ',
      '...\n',
      '!x ',
      ': ',
    );
    fc.assert(
      fc.property(fc.array(piece, { maxLength: 20 }), state, (pieces, wanted) => {
        const edited = withState(`---\n${pieces.join('')}\n---\nDo it.`, wanted);
        if (edited !== undefined) expect(edited).toContain(wanted);
      }),
      { numRuns: 1000 },
    );
  });
});
