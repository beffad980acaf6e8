import { describe, expect, test } from 'vitest';
import { graphProblems } from './graph.ts';

const node = (id: string, ...needs: string[]) => ({ id, needs: needs.map(need => ({ id: need })) });

describe('graphProblems', () => {
  test('finds nothing if every need exists and there is no cycle', () => {
    expect(graphProblems([])).toEqual([]);
    expect(graphProblems([node('c', 'a', 'b'), node('b', 'a'), node('a')])).toEqual([]);
  });

  test('finds all problems in one pass', () => {
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

  test('reports disjoint cycles separately', () => {
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

  test('reports at most twenty cycles', () => {
    const pairs = Array.from({ length: 30 }, (_, index) => [
      node(`a${index}`, `b${index}`),
      node(`b${index}`, `a${index}`),
    ]);
    expect(graphProblems(pairs.flat())).toHaveLength(20);
  });

  test('handles a chain of 100,000 steps', () => {
    const chain = Array.from({ length: 100_000 }, (_, index) => node(`s${index}`, `s${index + 1}`));
    expect(graphProblems(chain)).toEqual([
      { kind: 'unknown-need', id: 's99999', index: 99_999, need: 's100000', nearest: 's10000' },
    ]);
  });
});
