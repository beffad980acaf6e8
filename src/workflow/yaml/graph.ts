import { topologicalOrder } from '../dag.ts';
import { nearestName } from '../expression/names.ts';
import { needsOf } from './compile/step.ts';
import type { ShapedStep } from './shape.ts';
import type { ProblemList } from './source/problem-list.ts';
import type { Path, YamlSource } from './source/yaml-source.ts';

interface GraphNode {
  readonly id: string;
  readonly step: ShapedStep;
  readonly needs: readonly { readonly id: string }[];
}

/** Ids of all steps, those with problems included: naming one of them is not another problem. */
export function stepIdsOf(steps: readonly ShapedStep[]): ReadonlySet<string> {
  return new Set(steps.map(({ written }) => written['id']).filter(id => typeof id === 'string'));
}

/** Reports ids that are used twice, needs that do not exist, and circles. Whether there is nothing of the kind. */
export function checkGraph(steps: readonly ShapedStep[], source: YamlSource, problems: ProblemList): boolean {
  const before = problems.count;
  const ids = stepIdsOf(steps);
  const first = new Map<string, ShapedStep>();
  const nodes: GraphNode[] = [];
  for (const step of steps) {
    const { definition, path } = step;
    if (!definition) continue;
    const { id } = definition;
    const earlier = first.get(id);
    if (earlier) {
      const { line } = source.positionOf(source.rangeOf([...earlier.path, 'id']).start);
      const hint = `the other one is in line ${line}`;
      problems.add(source, { path: [...path, 'id'], message: `two steps have the id \`${id}\``, hint });
      continue;
    }
    first.set(id, step);
    nodes.push({ id, step, needs: knownNeeds(step, ids, { source, problems }) });
  }
  reportCircle(nodes, source, problems);
  return problems.count === before;
}

interface Reporter {
  readonly source: YamlSource;
  readonly problems: ProblemList;
}

function knownNeeds(
  step: ShapedStep,
  ids: ReadonlySet<string>,
  { source, problems }: Reporter,
): { id: string }[] {
  const self = step.definition?.id;
  return needsOf(step.definition ?? {}).flatMap(id => {
    const path = needPath(step, id);
    if (id === self) problems.add(source, { path, message: `step \`${id}\` needs itself` });
    else if (!ids.has(id)) {
      const guess = nearestName(id, ids);
      problems.add(source, {
        path,
        message: `there is no step \`${id}\``,
        hint: guess && `did you mean \`${guess}\`?`,
      });
    } else return [{ id }];
    return [];
  });
}

function needPath({ definition, path }: ShapedStep, id: string): Path {
  const needs = definition?.needs;
  return Array.isArray(needs) ? [...path, 'needs', needs.indexOf(id)] : [...path, 'needs'];
}

function reportCircle(nodes: readonly GraphNode[], source: YamlSource, problems: ProblemList): void {
  const sorted = topologicalOrder(nodes);
  if (sorted.kind === 'ordered') return;
  const closing = nodes.find(({ id }) => id === sorted.path[0]);
  const before = sorted.path.at(-2);
  if (!closing || before === undefined) return;
  problems.add(source, {
    path: needPath(closing.step, before),
    message: `these steps wait for each other in a circle: ${sorted.path.join(' -> ')}`,
    hint: 'take one of the `needs` away',
  });
}
