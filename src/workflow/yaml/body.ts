import type { Json, JsonObject } from '../../core/json.ts';
import { nearest } from '../../core/suggest.ts';
import type { Surroundings } from '../expression/evaluate.ts';
import type { ApproveBody, RunBody, Scope, UsesBody, WorkflowModel } from '../model.ts';
import { compileText, compileValue, isConstant, reportUnknownNames, type Site } from './compile.ts';
import type { Environment } from './environment.ts';
import { objectToValue } from './inputs.ts';
import { compileOutputSchema } from './output-schema.ts';
import type { StepDefinition } from './schema.ts';
import { environmentText, parseShellTemplate } from './shell-template.ts';
import type { Path } from './source.ts';

/** Where the body of a step stands and what it sees when it runs. */
export interface BodySite extends Site {
  readonly path: Path;
  readonly surroundings: (scope: Scope) => Surroundings;
  readonly environment: (scope: Scope) => Environment;
}

/** A shell command. */
export function compileRun(script: string, definition: StepDefinition, site: BodySite): RunBody {
  const { shell = 'bash', 'working-directory': directory } = definition;
  const path = [...site.path, 'run'];
  const template = parseShellTemplate(script, shell);
  site.problems.addFaults(site.source, path, template.faults);
  for (const { expression } of template.values) reportUnknownNames(expression, path, site);
  const workingDirectory =
    directory === undefined ? undefined : compileText(directory, [...site.path, 'working-directory'], site);
  const parseOutput = definition.output && compileOutput(definition.output, site);
  return {
    kind: 'run',
    command: scope => {
      const surroundings = site.surroundings(scope);
      const values = template.values.map(
        ({ name, expression }) => [name, environmentText(expression, surroundings)] as const,
      );
      return {
        script: template.script,
        shell,
        env: { ...site.environment(scope), ...Object.fromEntries(values) },
        ...(workingDirectory ? { workingDirectory: workingDirectory(surroundings) } : {}),
      };
    },
    ...(parseOutput ? { parseOutput } : {}),
  };
}

function compileOutput(schema: JsonObject, { source, problems, path }: BodySite): RunBody['parseOutput'] {
  const compiled = compileOutputSchema(schema);
  if (compiled.kind === 'parser') return compiled.parse;
  problems.add(source, {
    path: [...path, 'output'],
    atKey: true,
    message: `\`output\` is not a JSON Schema that can be checked: ${compiled.reason}`,
  });
  return undefined;
}

/** A gate for a person. */
export function compileApprove(approve: NonNullable<StepDefinition['approve']>, site: BodySite): ApproveBody {
  const { message, choices = ['approve', 'reject'] } =
    typeof approve === 'string' ? { message: approve } : approve;
  const path = [...site.path, 'approve'];
  const text = compileText(message, typeof approve === 'string' ? path : [...path, 'message'], site);
  for (const [index, choice] of choices.entries()) {
    if (choices.indexOf(choice) === index) continue;
    site.problems.add(site.source, {
      path: [...path, 'choices', index],
      message: `\`${choice}\` is offered twice`,
    });
  }
  return { kind: 'approve', request: scope => ({ message: text(site.surroundings(scope)), choices }) };
}

/** A child workflow with its input. */
export function compileUses(child: WorkflowModel, given: JsonObject, site: BodySite): UsesBody {
  checkInputs(child, given, site);
  const input = compileValue(given, [...site.path, 'with'], site);
  return { kind: 'uses', workflow: child, input: scope => input(site.surroundings(scope)) };
}

function checkInputs(
  { name: child, input: { fields } }: WorkflowModel,
  given: JsonObject,
  site: BodySite,
): void {
  const { source, problems } = site;
  const path = [...site.path, 'with'];
  const names = fields.map(({ name }) => name);
  for (const name of Object.keys(given)) {
    if (names.includes(name)) continue;
    const guess = nearest(name, names);
    const hint = guess
      ? `did you mean \`${guess}\`?`
      : names.length > 0
        ? `it has ${names.join(', ')}`
        : 'it has none';
    problems.add(source, {
      path: [...path, name],
      atKey: true,
      message: `workflow \`${child}\` has no input \`${name}\``,
      hint,
    });
  }
  for (const field of fields) {
    const value: Json | undefined = Object.hasOwn(given, field.name) ? given[field.name] : undefined;
    if (value === undefined) {
      if (!field.required) continue;
      const message = `workflow \`${child}\` needs the input \`${field.name}\``;
      problems.add(source, {
        path: [...site.path, 'uses'],
        message,
        hint: `add \`with: { ${field.name}: ... }\``,
      });
      continue;
    }
    const objection = isConstant(value) ? objectToValue(field, value) : undefined;
    if (objection)
      problems.add(source, { path: [...path, field.name], message: `input \`${field.name}\` ${objection}` });
  }
}
