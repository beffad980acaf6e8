import { readFileSync } from 'node:fs';
import { afterAll, describe, expect, it } from 'vitest';
import { actionsOf, patternOf, Reader, steadyText } from './walkthrough.ts';

/** Pages that can be followed from an empty folder to their end. The pages of a list continue in the same folder. */
const followed = [
  [
    'docs/guide/testing.md',
    'docs/how-to/write-a-case.md',
    'docs/how-to/record-and-update-cases.md',
    'docs/how-to/run-cases.md',
    'docs/how-to/ask-what-if.md',
  ],
  ['docs/how-to/explore-your-own-code.md'],
  ['docs/guide/workers.md'],
];

describe.each(followed.map(files => ({ files })))('$files, followed in order', ({ files }) => {
  const reader = new Reader();
  afterAll(() => reader.leave());

  it.each(files.flatMap(file => actionsOf({ file, text: readFileSync(file, 'utf8') })))('$place', action => {
    if (action.kind === 'write') {
      reader.write(action.file, action.text);
      return;
    }
    const { output, exitCode } = reader.type(action.script);
    if (action.shown === undefined) expect({ exitCode, output }).toMatchObject({ exitCode: 0 });
    else expect(steadyText(output)).toMatch(patternOf(action.shown));
  });
});

describe('the check itself', () => {
  const page = (text: string) => ({ file: 'page.md', text });

  it('tells files, commands and what they print apart', () => {
    const text =
      '```yaml\n# a/b.yaml\nname: b\n```\n\n```sh\nls\n```\n\n```text\na\n```\n\n```yaml\nname: c\n```\n';
    expect(actionsOf(page(text))).toEqual([
      { kind: 'write', place: 'page.md:2', file: 'a/b.yaml', text: '# a/b.yaml\nname: b\n' },
      { kind: 'type', place: 'page.md:7', script: 'ls\n', shown: 'a\n' },
    ]);
  });

  it.each([
    ['✓ fix  1.2s\n…\n1 passed in 3ms', '✓ fix     950ms\n\nmore\n1 passed in 1.0s\n', true],
    ['landed (1a2b3c4d5e)', 'landed (00ffaa1122)\n', true],
    ['at …/a.js:12', 'at /tmp/x/a.js:99\n', true],
    ['1 passed', '2 passed\n', false],
    ['a\n…\nc', 'a\nb\n', false],
    ['a (b)', 'a (b) and more\n', false],
  ])('%j against %j: %s', (shown, output, fits) => {
    expect(patternOf(shown).test(steadyText(output))).toBe(fits);
  });
});
