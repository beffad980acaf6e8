import { existsSync, readFileSync, statSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { type Page, pages } from './documents.ts';

const outside = /^(https?:|mailto:)/;

/** Anchors of a page: one for each heading, in the format of GitHub. */
function anchorsOf(text: string): ReadonlySet<string> {
  const headings = text.replace(/^```[\s\S]*?^```$/gm, '').matchAll(/^#+ (.*)$/gm);
  return new Set(
    [...headings].map(([, heading = '']) =>
      heading
        .toLowerCase()
        .replace(/[^\w\- ]/g, '')
        .replaceAll(' ', '-'),
    ),
  );
}

/** Messages about the broken links of a page. */
function brokenLinks({ file, text }: Page): readonly string[] {
  const targets = [...text.matchAll(/\]\(([^)\s]+)\)/g)].map(([, target = '']) => target);
  return targets
    .filter(target => !outside.test(target))
    .flatMap(target => {
      const [path = '', anchor] = target.split('#');
      const found = path === '' ? file : join(dirname(file), path);
      if (!existsSync(found)) return [`${file}: ${target} does not exist`];
      if (anchor === undefined || statSync(found).isDirectory()) return [];
      return anchorsOf(readFileSync(found, 'utf8')).has(anchor)
        ? []
        : [`${file}: ${target} has no such heading`];
    });
}

describe('links in the documentation', () => {
  it.each(pages().map(page => [page.file, page] as const))('in %s have existing targets', (_, page) => {
    expect(brokenLinks(page)).toEqual([]);
  });

  it('are reported if the file or the heading does not exist', () => {
    const text = '[a](nowhere.md) [b](README.md#nothing) [c](README.md#try-it) [d](https://example.com)';
    expect(brokenLinks({ file: 'README.md', text }).map(line => line.split(' ')[1])).toEqual([
      'nowhere.md',
      'README.md#nothing',
    ]);
  });
});
