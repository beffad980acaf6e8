import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { diffLines } from '../../core/line-diff.ts';
import { compareSnapshot } from './diff.ts';

const numbers = (from: number, to: number) =>
  Array.from({ length: to - from + 1 }, (_, index) => `line ${from + index}`);

const expected = ['--- worker_a ---', ...numbers(1, 9), '', '--- worker_b ---', ...numbers(10, 19), ''].join(
  '\n',
);

describe('the diff of two snapshots', () => {
  it('is unified and names sections', () => {
    const actual = expected
      .replace('line 2\n', 'line two\n')
      .replace('line 17\n', '')
      .replace('line 19\n', 'line 19\nline 20\n');
    const comparison = compareSnapshot({ expected, actual });
    expect(comparison.equal ? '' : comparison.diff).toMatchInlineSnapshot(`
      "@@ -1,6 +1,6 @@ worker_a
       --- worker_a ---
       line 1
      -line 2
      +line two
       line 3
       line 4
       line 5
      @@ -17,6 +17,6 @@ worker_b
       line 14
       line 15
       line 16
      -line 17
       line 18
       line 19
      +line 20
      "
    `);
    expect(comparison).toMatchObject({ equal: false, removed: 2, added: 2 });
  });

  it('joins nearby changes', () => {
    const actual = expected.replace('line 2\n', 'x\n').replace('line 6\n', 'y\n');
    const comparison = compareSnapshot({ expected, actual });
    expect(comparison.equal ? '' : comparison.diff).toMatchInlineSnapshot(`
      "@@ -1,10 +1,10 @@ worker_a
       --- worker_a ---
       line 1
      -line 2
      +x
       line 3
       line 4
       line 5
      -line 6
      +y
       line 7
       line 8
       line 9
      "
    `);
  });

  it('names a new section', () => {
    const actual = expected.replace('--- worker_b ---', '--- worker_c ---\nhello\n\n--- worker_b ---');
    const comparison = compareSnapshot({ expected, actual });
    expect(comparison.equal ? '' : comparison.diff).toMatchInlineSnapshot(`
      "@@ -9,6 +9,9 @@ worker_c
       line 8
       line 9

      +--- worker_c ---
      +hello
      +
       --- worker_b ---
       line 10
       line 11
      "
    `);
  });

  it('reports a missing final newline', () => {
    const comparison = compareSnapshot({ expected: 'a\n', actual: 'a' });
    expect(comparison).toMatchObject({ equal: false, removed: 1, added: 0 });
  });
});

describe('for any two strings, the diff', () => {
  const lines = fc.array(fc.constantFrom('a', 'b', 'c', '', '--- s ---'), { maxLength: 30 });

  it('contains both strings, with the fewest changes', () => {
    fc.assert(
      fc.property(lines, lines, (before, after) => {
        const diff = diffLines(before, after);
        const without = (kind: string) => diff.filter(line => line.kind !== kind).map(({ text }) => text);
        expect(without('added')).toEqual(before);
        expect(without('removed')).toEqual(after);
        const same = diff.filter(({ kind }) => kind === 'same').length;
        expect(same).toBe(longestCommon(before, after));
      }),
    );
  });

  it('turns one string into the other when applied', () => {
    fc.assert(
      fc.property(lines, lines, (before, after) => {
        const comparison = compareSnapshot({ expected: before.join('\n'), actual: after.join('\n') });
        const whole = before.join('\n');
        const patched = comparison.equal ? whole : applied(whole, comparison.diff);
        expect(patched).toBe(after.join('\n'));
      }),
    );
  });

  it('is not minimal if there are thousands of changes', () => {
    const before = Array.from({ length: 3000 }, (_, index) => `a${index}`);
    const after = Array.from({ length: 3000 }, (_, index) => `b${index}`);
    const diff = diffLines(['same', ...before], ['same', ...after]);
    expect(diff).toHaveLength(6001);
    expect(diff[0]).toEqual({ kind: 'same', text: 'same' });
  });
});

function longestCommon(a: readonly string[], b: readonly string[]): number {
  const table = Array.from({ length: a.length + 1 }, () => new Array<number>(b.length + 1).fill(0));
  for (const [i, left] of a.entries())
    for (const [j, right] of b.entries()) {
      const row = table[i + 1] ?? [];
      row[j + 1] = left === right ? (table[i]?.[j] ?? 0) + 1 : Math.max(table[i]?.[j + 1] ?? 0, row[j] ?? 0);
    }
  return table[a.length]?.[b.length] ?? 0;
}

function applied(text: string, diff: string): string {
  const before = text.split('\n');
  const after: string[] = [];
  let next = 0;
  for (const line of diff.split('\n').slice(0, -1)) {
    const hunk = /^@@ -(\d+),(\d+) /.exec(line);
    if (hunk) {
      const start = Number(hunk[1]) - (hunk[2] === '0' ? 0 : 1);
      after.push(...before.slice(next, start));
      next = start;
    } else if (line.startsWith('+')) after.push(line.slice(1));
    else if (line.startsWith('-')) next++;
    else after.push(before[next++] ?? '');
  }
  return [...after, ...before.slice(next)].join('\n');
}
