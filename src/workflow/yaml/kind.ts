import { type StepDefinition, type StepKind, stepKinds } from './schema.ts';
import type { ShapedStep } from './shape.ts';
import type { ProblemList } from './source/problem-list.ts';
import type { YamlSource } from './source/yaml-source.ts';

/** The keys that only some kinds of steps have. */
const kindsOfKey: Readonly<Partial<Record<keyof StepDefinition, readonly StepKind[]>>> = {
  shell: ['run'],
  'working-directory': ['run'],
  prompt: ['agent'],
  permissions: ['agent'],
  max_turns: ['agent'],
  on_fail: ['agent'],
  output: ['run', 'agent'],
  workspace: ['run', 'agent'],
  setup: ['run', 'agent'],
  checks: ['run', 'agent'],
  teardown: ['run', 'agent'],
  artifacts: ['run', 'agent'],
  concurrency: ['run', 'agent', 'uses'],
  strategy: ['run', 'agent', 'uses'],
  select: ['run', 'agent'],
  budget: ['run', 'agent', 'uses'],
  with: ['uses'],
  from: ['land'],
  verify: ['land'],
};

const whatToAdd =
  'add one of `run` (a shell script), `agent` (somebody who does it), `uses` (another workflow), `approve` (a question to a person), `land` (brings work onto a branch)';

interface Reporter {
  readonly source: YamlSource;
  readonly problems: ProblemList;
}

/** The one thing that a step does. Reports none, several, and keys that belong to another kind. */
export function kindOf(
  step: ShapedStep,
  definition: StepDefinition,
  { source, problems }: Reporter,
): StepKind | undefined {
  const [kind, second] = stepKinds.filter(key => Object.hasOwn(step.written, key));
  if (kind === undefined) {
    if (!step.isDamaged)
      problems.add(source, {
        path: step.path,
        message: `step \`${definition.id}\` does nothing`,
        hint: kindMeant(definition) ?? whatToAdd,
      });
    return undefined;
  }
  if (second !== undefined) {
    problems.add(source, {
      path: [...step.path, second],
      atKey: true,
      message: `a step has either \`${kind}\` or \`${second}\`, not both`,
      hint: 'make two steps of it',
    });
    return undefined;
  }
  for (const [key, kinds] of Object.entries(kindsOfKey)) {
    if (kinds.includes(kind) || !Object.hasOwn(step.written, key)) continue;
    const message = `\`${key}\` belongs to steps with ${listed(kinds)}, and this one has \`${kind}\``;
    problems.add(source, { path: [...step.path, key], atKey: true, message });
  }
  return kind;
}

/** A prompt without an agent, say. */
function kindMeant(definition: StepDefinition): string | undefined {
  for (const [key, kinds] of Object.entries(kindsOfKey)) {
    if (Object.hasOwn(definition, key) && kinds.length === 1)
      return `\`${key}\` belongs to steps with \`${kinds[0]}\``;
  }
  return undefined;
}

const listed = (kinds: readonly StepKind[]): string => {
  const names = kinds.map(kind => `\`${kind}\``);
  return names.length < 2 ? names.join('') : `${names.slice(0, -1).join(', ')} or ${names.at(-1)}`;
};
