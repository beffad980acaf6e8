import { expect } from 'vitest';
import type { HistoryEvent } from '../../src/core/events.ts';
import {
  buildGraph,
  definitionPath,
  type GraphNode,
  outerUnits,
  siblingUnit,
  unitOfEvent,
} from '../../src/engine/state/graph.ts';
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

/** Checks the invariants of a history that has ended, for any workflow and any timing. */
export function expectSoundHistory(workflow: WorkflowModel, history: readonly HistoryEvent[]): void {
  const graph = buildGraph(workflow);
  expect(history.map(({ seq }) => seq)).toEqual(history.map((_, index) => index + 1));
  expect(history[0]?.type).toBe('run.started');
  const ends = history.filter(({ type }) => /^run\.(completed|failed|cancelled)$/.test(type));
  expect(ends).toEqual([history.at(-1)]);
  const lives = new Map<string, string>();
  const expansions = new Map<string, number[]>();
  const ended = new Set<string>();
  for (const event of history) {
    const unit = unitOfEvent(event);
    if (unit === undefined) continue;
    const node = graph.byPath.get(definitionPath(unit));
    if (!node) throw new Error(`${unit} is not in the graph`);
    const token = tokens[event.type] ?? '';
    lives.set(unit, (lives.get(unit) ?? '') + token);
    if (event.type === 'fanout.expanded')
      expansions.set(unit, [...(expansions.get(unit) ?? []), event.data.total]);
    if (token === 'S') {
      expectDependenciesEnded({ unit, node, ended });
      for (const other of ended) if (outerUnits(other).includes(unit)) ended.delete(other);
    }
    if (token === 'E')
      for (const inner of lives.keys()) if (outerUnits(inner)[0] === unit) expect(ended).toContain(inner);
    if (token === 'E' || token === 'K') ended.add(unit);
  }
  for (const node of graph.nodes)
    if (!insideFanOut(node)) expectWholeLives(node.unit, lives, startsOf(node, lives));
  for (const [unit, totals] of expansions) expectWorkers({ unit, totals, lives });
}

interface Start {
  readonly unit: string;
  readonly node: GraphNode;
  readonly ended: ReadonlySet<string>;
}

function expectDependenciesEnded({ unit, node, ended }: Start): void {
  const needs = /:\d+$/.test(unit) ? [] : node.needs.map(({ step }) => siblingUnit(unit, step.id));
  for (const need of needs) expect(ended.has(need), `${unit} starts after ${need}`).toBe(true);
  for (const outer of outerUnits(unit))
    expect(ended.has(outer), `${unit} starts before ${outer} ends`).toBe(false);
}

const insideFanOut = ({ scope }: GraphNode): boolean =>
  scope.parent !== undefined && (scope.parent.fanOut !== undefined || insideFanOut(scope.parent));

const countStarts = (life: string | undefined): number => (life ?? '').replaceAll(/[^S]/g, '').length;

const startsOf = ({ scope }: GraphNode, lives: ReadonlyMap<string, string>): number =>
  scope.parent ? countStarts(lives.get(scope.parent.unit)) : 1;

/**
 * A life of a step is any number of attempts followed by one end, or a skip. A nested step has one life per start of
 * its parent.
 */
function expectWholeLives(unit: string, lives: ReadonlyMap<string, string>, count: number): void {
  const life = lives.get(unit) ?? '';
  const parts = life.match(/(?:S[RI])*S?E|K/g) ?? [];
  expect(parts.join(''), `lives of ${unit}`).toBe(life);
  expect(parts.length, `number of lives of ${unit}`).toBe(count);
}

interface Expanded {
  readonly unit: string;
  readonly totals: readonly number[];
  readonly lives: ReadonlyMap<string, string>;
}

/** Every copy of every expansion has one life. */
function expectWorkers({ unit, totals, lives }: Expanded): void {
  for (let worker = 0; worker < Math.max(...totals); worker++) {
    expectWholeLives(`${unit}:${worker}`, lives, totals.filter(total => total > worker).length);
  }
}
