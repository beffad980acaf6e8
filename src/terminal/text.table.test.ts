import { expect, it } from 'vitest';
import { displayWidth, painter, tableLines } from './text.ts';

const rows = [
  ['✓', 'build', '1.2s', 'all is well'],
  ['✗', 'a-step-with-a-long-name', '340ms', 'exited with code 1 after a long explanation'],
  ['·', '日本', '', ''],
].map(row => row.map(text => ({ text })));
const columns = [{}, { shrinks: true }, { align: 'right' as const }, {}];
const table = (width: number) => tableLines(rows, { columns, width, paint: painter(false), ellipsis: '…' });

it('aligns columns and truncates the last one first', () => {
  expect(table(80)).toMatchInlineSnapshot(`
    [
      "✓  build                     1.2s  all is well",
      "✗  a-step-with-a-long-name  340ms  exited with code 1 after a long explanation",
      "·  日本",
    ]
  `);
  expect(table(60)).toMatchInlineSnapshot(`
    [
      "✓  build                     1.2s  all is well",
      "✗  a-step-with-a-long-name  340ms  exited with code 1 after…",
      "·  日本",
    ]
  `);
});

it('shortens names in a narrow table and drops columns in a very narrow one', () => {
  expect(table(30)).toMatchInlineSnapshot(`
    [
      "✓  build         1.2s  all is…",
      "✗  a-step-wit…  340ms  exited…",
      "·  日本",
    ]
  `);
  expect(table(14)).toMatchInlineSnapshot(`
    [
      "✓  build",
      "✗  a-ste…",
      "·  日本",
    ]
  `);
});

it('is never wider than its width', () => {
  for (let width = 1; width < 100; width++) {
    for (const line of table(width)) expect(displayWidth(line)).toBeLessThanOrEqual(width);
  }
});

it('colors the text but not the blanks around it', () => {
  const cells = [
    [{ text: 'a', colour: 'red' as const }, { text: 'b' }],
    [{ text: 'long' }, { text: 'c' }],
  ];
  const lines = tableLines(cells, { columns: [{}, {}], width: 20, paint: painter(true), ellipsis: '…' });
  expect(lines[0]).toBe('\u001B[31ma\u001B[39m     b');
});
