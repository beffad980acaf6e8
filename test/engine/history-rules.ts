import { expect } from 'vitest';
import type { HistoryEvent } from '../../src/core/event.ts';
import { buildGraph, type GraphNode } from '../../src/engine/graph.ts';
import type { WorkflowModel } from '../../src/workflow/model.ts';

const tokens: Partial<Record<HistoryEvent['type'], string>> = {
  'step.started': 'S',
  'step.retrying': 'R',
  'step.interrupted': 'I',
  'step.completed': 'E',
  'step.failed': 'E',
  'step.cancelled': 'E',
  'step.skipped': 'K',
};

/** What holds for the history of every run that has ended, whatever the workflow is and however long things took. */
export function expectSoundHistory(workflow: WorkflowModel, history: readonly HistoryEvent[]): void {
  const graph = buildGraph(workflow);
  expect(history.map(({ seq }) => seq)).toEqual(history.map((_, index) => index + 1));
  expect(history[0]?.type).toBe('run.started');
  const ends = history.filter(({ type }) => /^run\.(completed|failed|cancelled)$/.test(type));
  expect(ends).toEqual([history.at(-1)]);
  const lives = new Map<string, string>();
  const ended = new Set<string>();
  for (const { type, step } of history) {
    const node = step === undefined ? undefined : graph.byPath.get(step);
    if (step === undefined) continue;
    if (!node) throw new Error(`${step} is not in the graph`);
    lives.set(step, (lives.get(step) ?? '') + (tokens[type] ?? ''));
    if (type === 'step.started') {
      expectDependenciesEnded(node, ended);
      if (node.child) for (const inner of insideOf(node)) ended.delete(inner.path);
    }
    if (tokens[type] === 'E' || tokens[type] === 'K') ended.add(step);
  }
  for (const node of graph.nodes) expectWholeLives(node, lives);
}

function expectDependenciesEnded({ path, needs, scope }: GraphNode, ended: ReadonlySet<string>): void {
  for (const need of needs) expect(ended.has(need.path), `${path} starts after ${need.path}`).toBe(true);
  if (scope.parent)
    expect(ended.has(scope.parent.path), `${path} starts before ${scope.parent.path} ends`).toBe(false);
}

/** Every life of a step is a number of attempts and one end, or a skip; inside a child, one for each start of it. */
function expectWholeLives({ path, scope }: GraphNode, lives: ReadonlyMap<string, string>): void {
  const life = lives.get(path) ?? '';
  const parts = life.match(/(?:S[RI])*S?E|K/g) ?? [];
  expect(parts.join(''), `lives of ${path}`).toBe(life);
  const starts = scope.parent ? (lives.get(scope.parent.path) ?? '').replaceAll(/[^S]/g, '').length : 1;
  expect(parts.length, `number of lives of ${path}`).toBe(starts);
}

function* insideOf(node: GraphNode): Generator<GraphNode> {
  for (const inner of node.child?.nodes ?? []) {
    yield inner;
    yield* insideOf(inner);
  }
}
