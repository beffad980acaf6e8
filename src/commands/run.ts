import { RepriseError } from '../core/errors.ts';
import type { JsonObject } from '../core/json.ts';
import { type Definition, loadDefinition, type Place } from '../project/definitions.ts';
import type { ExitCode } from '../project/exit-codes.ts';
import type { CommandIo } from '../project/host.ts';
import {
  type AdhocOptions,
  adhocLine,
  type JournalCommand,
  runLine,
} from '../project/journal/command-line.ts';
import { findProject, type ProjectOptions } from '../project/project.ts';
import { adhocDefinition } from './adhoc.ts';
import { type DriveOptions, drive } from './drive.ts';
import { type InputOptions, readInput } from './inputs.ts';

export interface RunCommandOptions extends DriveOptions, InputOptions, AdhocOptions, ProjectOptions {
  /** Its name in the project, or the path of a file, with `#name` for one of several exports. Not with `agent`. */
  readonly workflow?: string | undefined;
}

/** Starts a workflow and sees it through. Throws before anything was written if the definition or the input is wrong. */
export async function runCommand(
  { io }: { readonly io: CommandIo },
  options: RunCommandOptions,
): Promise<ExitCode> {
  const project = findProject(io, options);
  const { definition, input, command } = await toBeRun(options, { project, io });
  const { model: workflow, source } = definition;
  return drive({
    io,
    project,
    definition,
    options,
    command,
    begin: (engine, runOptions) => engine.start({ ...runOptions, workflow, input, source }),
  });
}

interface ToBeRun {
  readonly definition: Definition;
  readonly input: JsonObject;
  readonly command: JournalCommand;
}

async function toBeRun(options: RunCommandOptions, place: Place): Promise<ToBeRun> {
  const { workflow, agent } = options;
  if (agent === undefined && workflow !== undefined) {
    refuse(options, ['prompt', 'promptFile', 'concurrency', 'check', 'permissions'], 'needs --agent');
    const definition = await loadDefinition(workflow, place);
    const input = await readInput(options, { definition, io: place.io });
    checkInput(definition, input, workflow);
    return { definition, input, command: runLine(definition.source, input) };
  }
  if (agent !== undefined && workflow === undefined) {
    refuse(options, ['input', 'inputJson', 'inputFile'], 'is for a workflow, and not for --agent');
    const { definition, input } = await adhocDefinition(agent, options, place);
    return { definition, input, command: adhocLine(agent, options, input) };
  }
  throw new RepriseError(
    'USAGE',
    agent ? 'a workflow and --agent exclude each other' : 'there is nothing to run',
    {
      hint: 'name a workflow (reprise run <workflow>), or an agent (reprise run --agent claude --prompt "...")',
    },
  );
}

function refuse(options: RunCommandOptions, names: readonly (keyof RunCommandOptions)[], why: string): void {
  const given = names.find(name => options[name] !== undefined);
  if (given === undefined) return;
  const flag = given.replace(/[A-Z]/g, letter => `-${letter.toLowerCase()}`);
  throw new RepriseError('USAGE', `--${flag} ${why}`);
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
