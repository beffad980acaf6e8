import { expect, it } from 'vitest';
import { scatter } from './policies.ts';

it('scatter keeps all items and spreads its first ones evenly', () => {
  const all = Array.from({ length: 1000 }, (_, at) => at);
  const scattered = scatter(all);
  expect(scattered.toSorted((a, b) => a - b)).toEqual(all);
  const first = [0, ...scattered.slice(0, 20).toSorted((a, b) => a - b), 1000];
  const gaps = first.slice(1).map((at, index) => at - (first[index] ?? 0));
  expect(Math.max(...gaps)).toBeLessThan(150);
});
