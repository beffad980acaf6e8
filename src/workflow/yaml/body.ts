import type { Json, JsonObject } from '../../core/json.ts';
import { nearest } from '../../core/suggest.ts';
import type { ApproveBody, RunBody, UsesBody, WorkflowModel, WorkRules } from '../model.ts';
import { compileScript } from './command.ts';
import { compileText, compileValue, isConstant } from './compile/expressions.ts';
import { objectToValue } from './compile/inputs.ts';
import { compileOutput } from './output.ts';
import type { StepDefinition } from './schema.ts';
import type { BodySite } from './site.ts';

interface RunParts {
  readonly script: string;
  readonly definition: StepDefinition;
  readonly work: WorkRules | undefined;
}

/** A shell command. */
export function compileRun({ script, definition, work }: RunParts, site: BodySite): RunBody {
  const { shell, 'working-directory': directory, output } = definition;
  const workingDirectory =
    directory === undefined ? undefined : compileText(directory, [...site.path, 'working-directory'], site);
  const parseOutput = output && compileOutput(output, site);
  return {
    kind: 'run',
    command: compileScript(script, [...site.path, 'run'], site, { shell, workingDirectory }),
    ...(parseOutput ? { parseOutput } : {}),
    ...(work ? { work } : {}),
  };
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
