import type { Json } from '../../core/json.ts';
import type { KnownContext, Surroundings } from '../expression/evaluate.ts';
import type { Scope, StepView } from '../model.ts';
import { type Compiled, compileText, type Site } from './compile/expressions.ts';
import type { EnvironmentDefinition } from './schema.ts';
import { valuePrefix, withoutNul } from './shell/template.ts';
import type { Path } from './source/yaml-source.ts';

export type Environment = Readonly<Record<string, string>>;

/** The variables of an `env:`. */
export function compileEnvironment(
  definition: EnvironmentDefinition,
  path: Path,
  site: Site,
): Compiled<Environment> {
  const variables = Object.entries(definition).map(([name, value]) => {
    if (name.startsWith(valuePrefix)) {
      const message = `variables that begin with \`${valuePrefix}\` carry the values of \`\${{ }}\``;
      site.problems.add(site.source, {
        path: [...path, name],
        atKey: true,
        message,
        hint: 'choose another name',
      });
    }
    return [name, compileText(value === null ? '' : String(value), [...path, name], site)] as const;
  });
  return surroundings =>
    Object.fromEntries(variables.map(([name, value]) => [name, withoutNul(value(surroundings))]));
}

/** What an expression sees in a scope. The environment is worked out only if it is read, and once. */
export function surroundingsOf(scope: Scope, environment: () => Environment): Surroundings {
  let known: Environment | undefined;
  const read = (context: KnownContext): Json => {
    switch (context) {
      case 'inputs':
        return scope.inputs;
      case 'steps':
        return Object.fromEntries(Object.entries(scope.steps).map(([id, view]) => [id, viewAsJson(view)]));
      case 'env':
        known ??= environment();
        return known;
      case 'matrix':
        return scope.matrix ?? {};
    }
  };
  return { status: scope.status, read };
}

const viewAsJson = ({ outcome, conclusion, outputs, artifacts, branch, commit }: StepView): Json => ({
  outcome,
  conclusion,
  outputs: outputs ?? null,
  artifacts: artifacts ?? {},
  branch: branch ?? null,
  commit: commit ?? null,
});
