import { describe, expect, it } from 'vitest';
import { blocksOf, isGenerated, pageAt, pages } from './documents.ts';
import {
  actionsOf,
  firstLineOf,
  type PagePlan,
  patternOf,
  shellBlocksOf,
  steadyText,
} from './walkthrough.ts';
import { exemptPages, firstPages, runPages, testingPages } from './walkthrough-pages.ts';

describe('the list of walkthroughs', () => {
  const plans = new Map<string, PagePlan>(
    [...testingPages, ...firstPages, ...runPages].flatMap(Object.entries),
  );
  const withCommands = pages().filter(page => !isGenerated(page) && shellBlocksOf(page).length > 0);

  it('has every page with shell commands, or exempts it', () => {
    expect([...plans.keys(), ...Object.keys(exemptPages)].toSorted()).toEqual(
      withCommands.map(({ file }) => file).toSorted(),
    );
  });

  it.each([...plans])('refers only to blocks that %s has', (file, { files, before, exits, exempt }) => {
    const first = blocksOf(pageAt(file)).map(({ text }) => firstLineOf(text));
    const named = [files, before, exits, exempt].flatMap(each => Object.keys(each ?? {}));
    expect(named.filter(line => !first.includes(line))).toEqual([]);
  });

  it.each(withCommands)('recognizes every code block of $file', page => {
    expect(blocksOf(page).length * 2).toBe(page.text.match(/^\s*(```|~~~)/gm)?.length);
  });
});

describe('the walkthrough', () => {
  const page = (text: string) => ({ file: 'page.md', text });

  it('distinguishes files, commands and their output', () => {
    const text =
      '```yaml\n# a/b.yaml\nname: b\n```\n\n```sh\nls\n```\n\n```text\na\n```\n\n```yaml\nname: c\n```\n';
    expect(actionsOf(page(text))).toEqual([
      { kind: 'write', place: 'page.md:2', file: 'a/b.yaml', text: '# a/b.yaml\nname: b\n' },
      { kind: 'type', place: 'page.md:7', script: 'ls\n', shown: 'a\n' },
    ]);
  });

  it('follows the plan of a page', () => {
    const text = '```yaml\nname: b\n```\n\n```sh\ngit x <name>\nls\n```\n\n```sh\nnpm ci\n```\n';
    const plan: PagePlan = {
      files: { 'name: b': 'b.yaml' },
      before: { 'git x <name>': 'cd a' },
      exits: { 'git x <name>': 2 },
      placeholders: { '<name>': 'y' },
      exempt: { 'npm ci': 'slow' },
    };
    expect(actionsOf(page(text), plan)).toEqual([
      { kind: 'write', place: 'page.md:2', file: 'b.yaml', text: 'name: b\n' },
      {
        kind: 'type',
        place: 'page.md:6',
        script: 'cd a\nexits_with 2 git x y\nls\n',
        shown: undefined,
      },
    ]);
  });

  it.each([
    ['✓ fix  1.2s\n…\n1 passed in 3ms', '✓ fix     950ms\n\nmore\n1 passed in 1.0s\n', true],
    ['landed (1a2b3c4d5e)', 'landed (00ffaa1122)\n', true],
    ['landed (1a2b3c4d5e)', 'landed (0123456789)\n', true],
    ['at …/a.js:12', 'at /tmp/x/a.js:99\n', true],
    ['1 passed', '2 passed\n', false],
    ['a\n…\nc', 'a\nb\n', false],
    ['a (b)', 'a (b) and more\n', false],
  ])('compares %j with %j: %s', (shown, output, fits) => {
    expect(patternOf(shown).test(steadyText(output))).toBe(fits);
  });
});
