import { RepriseError } from '../core/errors.ts';
import type { JsonObject } from '../core/json.ts';
import { type DriveOptions, drive } from './drive.ts';
import type { ExitCode } from './exit-codes.ts';
import { type InputOptions, readInput } from './inputs.ts';
import type { CommandIo } from './io.ts';
import { type Definition, loadDefinition } from './load-definition.ts';
import { findProject, type ProjectOptions } from './project.ts';

export interface RunCommandOptions extends DriveOptions, InputOptions, ProjectOptions {
  /** Its name in the project, or the path of a file, with `#name` for one of several exports. */
  readonly workflow: string;
}

/** Starts a workflow and sees it through. Throws before anything was written if the definition or the input is wrong. */
export async function runCommand(
  { io }: { readonly io: CommandIo },
  options: RunCommandOptions,
): Promise<ExitCode> {
  const project = findProject(io, options);
  const definition = await loadDefinition(options.workflow, { project, io });
  const input = await readInput(options, { definition, io });
  checkInput(definition, input, options.workflow);
  const { model: workflow, source } = definition;
  return drive({
    io,
    project,
    definition,
    options,
    begin: (engine, runOptions) => engine.start({ ...runOptions, workflow, input, source }),
  });
}

function checkInput({ model }: Definition, input: JsonObject, reference: string): void {
  try {
    model.input.parse(input);
  } catch (thrown) {
    if (!(thrown instanceof RepriseError) || thrown.code !== 'INPUT_INVALID') throw thrown;
    const wanted = model.input.fields.filter(({ required }) => required);
    const flags = wanted
      .map(({ name, type, options }) => ` --input ${name}=<${options?.join('|') ?? type}>`)
      .join('');
    throw new RepriseError('INPUT_INVALID', thrown.message, {
      cause: thrown,
      hint: thrown.hint ?? `start it with: reprise run ${reference}${flags}`,
    });
  }
}
