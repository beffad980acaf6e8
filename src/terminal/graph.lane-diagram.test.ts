import { expect, it } from 'vitest';
import { laneDiagram } from './graph.ts';
import { displayWidth } from './text.ts';

const rows = [
  { lane: 'ann', text: 'seats.look' },
  { lane: 'bob', text: 'seats.look' },
  { lane: 'ann', text: 'seats.book' },
  { lane: 'bob', text: 'seats.book' },
];

it('has a column for each lane and a line for each effect', () => {
  expect(laneDiagram(rows, { columns: 40 }).join('\n')).toMatchInlineSnapshot(`
    "   ann                bob
    1  seats.look         │
    2  │                  seats.look
    3  seats.book         │
    4  │                  seats.book"
  `);
});

it('wraps text that is too long for its column', () => {
  const long = [{ lane: 'b', text: 'claims.write of the task fix-the-readme by worker_b' }, ...rows];
  expect(laneDiagram(long, { columns: 60, lanes: ['ann', 'bob', 'b'] }).join('\n')).toMatchInlineSnapshot(`
    "   ann                bob                b
    1  │                  │                  claims.write of
       │                  │                  the task
       │                  │                  fix-the-readme by
    2  seats.look         │                  │
    3  │                  seats.look         │
    4  seats.book         │                  │
    5  │                  seats.book         │"
  `);
});

it('names the lane on each line if the columns do not fit', () => {
  const many = Array.from({ length: 9 }, (_, index) => ({ lane: `worker_${index}`, text: 'land.lock' }));
  expect(laneDiagram(many).slice(0, 3).join('\n')).toMatchInlineSnapshot(`
    "1  worker_0  land.lock
    2  worker_1  land.lock
    3  worker_2  land.lock"
  `);
});

it('is never wider than the terminal', () => {
  for (const columns of [30, 40, 80])
    for (let lanes = 1; lanes < 12; lanes++) {
      const wide = Array.from({ length: 30 }, (_, index) => ({
        lane: `arbeiter_${'日本'.repeat(index % lanes)}`,
        text: `effect-with-a-long-name.${'x'.repeat(index)} and more`,
      }));
      for (const line of laneDiagram(wide, { columns }))
        expect(displayWidth(line)).toBeLessThanOrEqual(columns);
    }
});
