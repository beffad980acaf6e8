import { describe, expect, test } from 'vitest';
import { graphProblems } from './graph.ts';

const node = (id: string, ...needs: string[]) => ({ id, needs: needs.map(need => ({ id: need })) });

describe('the problems of a graph', () => {
  test('are none when every need is there and nothing is circular', () => {
    expect(graphProblems([])).toEqual([]);
    expect(graphProblems([node('c', 'a', 'b'), node('b', 'a'), node('a')])).toEqual([]);
  });

  test('are all found at once', () => {
    const problems = graphProblems([
      node('build', 'chekout'),
      node('checkout'),
      node('build'),
      node('selfish', 'selfish'),
      node('x', 'y'),
      node('y', 'z'),
      node('z', 'x', 'checkout'),
      node('last', 'unlike-any'),
    ]);
    expect(problems).toEqual([
      { kind: 'unknown-need', id: 'build', index: 0, need: 'chekout', nearest: 'checkout' },
      { kind: 'duplicate-id', id: 'build', index: 2, firstIndex: 0 },
      { kind: 'self-need', id: 'selfish', index: 3 },
      { kind: 'unknown-need', id: 'last', index: 7, need: 'unlike-any', nearest: undefined },
      { kind: 'cycle', path: ['x', 'z', 'y', 'x'] },
    ]);
  });

  test('name one cycle from each knot', () => {
    const cycles = graphProblems([
      node('a', 'b'),
      node('b', 'a'),
      node('c', 'd'),
      node('d', 'c'),
      node('e', 'a', 'c'),
    ]);
    expect(cycles).toEqual([
      { kind: 'cycle', path: ['a', 'b', 'a'] },
      { kind: 'cycle', path: ['c', 'd', 'c'] },
    ]);
  });

  test('stop at twenty cycles', () => {
    const knots = Array.from({ length: 30 }, (_, index) => [
      node(`a${index}`, `b${index}`),
      node(`b${index}`, `a${index}`),
    ]);
    expect(graphProblems(knots.flat())).toHaveLength(20);
  });

  test('are found in a chain of 100,000 steps', () => {
    const chain = Array.from({ length: 100_000 }, (_, index) => node(`s${index}`, `s${index + 1}`));
    expect(graphProblems(chain)).toEqual([
      { kind: 'unknown-need', id: 's99999', index: 99_999, need: 's100000', nearest: 's10000' },
    ]);
  });
});
