import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { topologicalOrder } from './graph.ts';

const node = (id: string, ...needs: string[]) => ({ id, needs: needs.map(need => ({ id: need })) });
const idsOf = (nodes: readonly ReturnType<typeof node>[]) => {
  const sorted = topologicalOrder(nodes);
  return sorted.kind === 'ordered' ? sorted.order.map(({ id }) => id) : sorted.path;
};

describe('topologicalOrder', () => {
  test('keeps the written order if it is possible', () => {
    expect(idsOf([node('b'), node('a'), node('c', 'a', 'b')])).toEqual(['b', 'a', 'c']);
  });

  test('puts the needs of a step before it and keeps the rest as written', () => {
    expect(idsOf([node('d', 'b', 'c'), node('a'), node('c', 'a'), node('b', 'a')])).toEqual([
      'a',
      'b',
      'c',
      'd',
    ]);
  });

  test('reports a cycle in execution order', () => {
    expect(idsOf([node('a', 'c'), node('b', 'a'), node('c', 'b')])).toEqual(['a', 'b', 'c', 'a']);
  });

  test('returns every step once, after all of its needs, for any written order', () => {
    const graphs = fc.array(fc.array(fc.nat(29), { maxLength: 4 }), { maxLength: 30 }).chain(needs => {
      const nodes = needs.map((list, index) =>
        node(`s${index}`, ...new Set(list.filter(need => need < index).map(need => `s${need}`))),
      );
      return fc.shuffledSubarray(nodes, { minLength: nodes.length });
    });
    fc.assert(
      fc.property(graphs, nodes => {
        const order = idsOf(nodes);
        expect([...order].sort()).toEqual(nodes.map(({ id }) => id).sort());
        for (const { id, needs } of nodes) {
          for (const need of needs) expect(order.indexOf(need.id)).toBeLessThan(order.indexOf(id));
        }
      }),
    );
  });
});
