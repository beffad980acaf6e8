import fc from 'fast-check';
import { expect, it } from 'vitest';
import { formatSchedule, parseSchedule } from './schedule.ts';

const moves = (...lanes: string[]) => lanes.map(lane => ({ lane }));

it('is short, and can be read', () => {
  expect(formatSchedule(moves('a', 'a', 'run/0', 'worker_1', 'worker_1'))).toBe('a*2 run/0 worker_1*2');
});

it('is the same schedule when it is read again, whatever lanes are called', () => {
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

it('refuses what is none', () => {
  for (const text of ['a*0', 'a*', '*3', 'a*b', 'a%', 'a*2*3'])
    expect(() => parseSchedule(`ok*2 ${text}`)).toThrow(`${text} is not a turn of a schedule`);
});
