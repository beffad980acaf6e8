import fc from 'fast-check';
import { expect, it } from 'vitest';
import { formatSchedule, parseSchedule } from './schedule.ts';

const moves = (...lanes: string[]) => lanes.map(lane => ({ lane }));

it('a schedule is formatted as turns of lanes', () => {
  expect(formatSchedule(moves('a', 'a', 'run/0', 'worker_1', 'worker_1'))).toBe('a*2 run/0 worker_1*2');
});

it('a schedule survives formatting and parsing for all names of lanes', () => {
  const lane = fc.oneof(
    fc.constantFrom('a', 'a*2', '%', '100%', 'a b', 'a\nb', ''),
    fc.string({ unit: 'grapheme' }),
  );
  fc.assert(
    fc.property(fc.array(lane), lanes => {
      expect(parseSchedule(formatSchedule(moves(...lanes)))).toEqual(moves(...lanes));
    }),
  );
});

it('parsing refuses invalid turns', () => {
  for (const text of ['a*0', 'a*', '*3', 'a*b', 'a%', 'a*2*3'])
    expect(() => parseSchedule(`ok*2 ${text}`)).toThrow(`${text} is not a valid turn of a schedule`);
});
