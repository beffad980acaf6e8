import { needsOf } from '../builder/handle.ts';
import type { DagNode } from '../dag.ts';
import { type GraphProblem, graphProblems, indexById } from '../graph.ts';
import type { Problem } from '../problems.ts';
import { type AnyStep, type Dependency, isStep, stepKey } from './handle.ts';

export interface StepsToCheck {
  readonly workflow: string;
  readonly steps: readonly unknown[];
  readonly output: readonly Dependency[];
}

/** What is wrong with the steps of a workflow: each for itself, then how they hang together, then its output. */
export function stepProblems({ workflow, steps: listed, output }: StepsToCheck): readonly Problem[] {
  if (!Array.isArray(listed) || listed.length === 0) {
    return [
      { message: `workflow "${workflow}": it has no steps`, hint: 'list them: steps: [first, second]' },
    ];
  }
  const sound = ifSound(listed);
  if (sound)
    return output
      .filter(({ step }) => sound.get(step.id) !== step)
      .map(dependency => missingOutput(workflow, dependency));
  const steps = listed.filter(isStep);
  const indexes = indexById(steps);
  const { nodes, namesakes } = withoutNamesakes(steps, indexes);
  return [
    ...(steps.length < listed.length ? notSteps(workflow, listed) : []),
    ...steps.filter(hasProblems).flatMap(step => step[stepKey].problems),
    ...namesakes,
    ...graphProblems(nodes, indexes).map(problem => explain(workflow, problem)),
    ...output
      .filter(({ step }) => lookUp(step, steps, indexes) !== 'listed')
      .map(dependency => missingOutput(workflow, dependency)),
  ];
}

/**
 * The steps by their ids, if nothing is wrong with any of them and each comes after others above it only. Nearly always
 * so, and seen at one look, where to find out what is wrong takes many.
 */
function ifSound(listed: readonly unknown[]): ReadonlyMap<string, AnyStep> | undefined {
  const above = new Map<string, AnyStep>();
  for (const step of listed) {
    if (!isStep(step) || hasProblems(step)) return undefined;
    for (const dependency of step[stepKey].dependencies)
      if (above.get(dependency.id) !== dependency.step) return undefined;
    const before = above.size;
    if (above.set(step.id, step).size === before) return undefined;
  }
  return above;
}

const hasProblems = (step: AnyStep): boolean => step[stepKey].problems.length > 0;

type Indexes = ReadonlyMap<string, number>;

/**
 * Whether the step is in the list, or else another one of its id.
 * Several steps of one id are a problem by themselves, so the list is searched only when things are wrong already.
 */
function lookUp(
  step: AnyStep,
  steps: readonly AnyStep[],
  indexes: Indexes,
): 'listed' | 'namesake' | 'unknown' {
  const index = indexes.get(step.id);
  if (index === undefined) return 'unknown';
  return steps[index] === step || steps.includes(step, index) ? 'listed' : 'namesake';
}

/**
 * Ids alone do not show that a dependency is another step than the listed one of the same id. The graph is looked at
 * without these namesakes: they would look like steps that wait for themselves.
 */
function withoutNamesakes(
  steps: readonly AnyStep[],
  indexes: Indexes,
): { readonly nodes: readonly DagNode[]; readonly namesakes: readonly Problem[] } {
  const isNamesake = ({ step }: Dependency) => lookUp(step, steps, indexes) === 'namesake';
  const namesakes: Problem[] = [];
  const nodes = steps.map((step): DagNode => {
    const { dependencies, model } = step[stepKey];
    if (!dependencies.some(isNamesake)) return model;
    namesakes.push(...dependencies.filter(isNamesake).map(({ step: other }) => mixedUp(step, other)));
    return { id: step.id, needs: needsOf(dependencies.filter(dependency => !isNamesake(dependency))) };
  });
  return { nodes, namesakes };
}

function notSteps(workflow: string, listed: readonly unknown[]): Problem[] {
  return listed.flatMap((value, index) =>
    isStep(value)
      ? []
      : [
          {
            message: `workflow "${workflow}": steps[${index}] is not a step`,
            hint: 'list what step(), shell(), agent(), approve() or land() returned',
          },
        ],
  );
}

function explain(workflow: string, problem: GraphProblem): Problem {
  switch (problem.kind) {
    case 'duplicate-id':
      return {
        message: `workflow "${workflow}": steps[${problem.firstIndex}] and steps[${problem.index}] both have the id "${problem.id}"`,
        hint: 'rename or remove one of them',
      };
    case 'unknown-need':
      return {
        message: `step "${problem.id}" comes after step "${problem.need}", which is not in the steps of workflow "${workflow}"`,
        hint: `add "${problem.need}" to \`steps\`, or take it out of \`after\``,
      };
    case 'self-need':
      return { message: `step "${problem.id}" comes after itself` };
    case 'cycle':
      return {
        message: `steps wait for each other: ${problem.path.join(' -> ')}`,
        hint: 'remove one of these dependencies',
      };
  }
}

const mixedUp = (step: AnyStep, other: AnyStep): Problem => ({
  message: `step "${step.id}" comes after a step "${other.id}" that is not the "${other.id}" in \`steps\``,
  hint: 'give one of the two another id, and list both',
});

const missingOutput = (workflow: string, { alias, step }: Dependency): Problem => ({
  message: `workflow "${workflow}": output.${alias} comes from step "${step.id}", which is not in its steps`,
  hint: `add "${step.id}" to \`steps\`, or take it out of \`output\``,
});
