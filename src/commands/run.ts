import { createHash } from 'node:crypto';
import { mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join, resolve } from 'node:path';
import { RepriseError } from '../core/errors.ts';
import type { JsonObject } from '../core/json.ts';
import { nearest } from '../core/suggest.ts';
import { loadAgents } from '../project/agents.ts';
import { type Definition, loadDefinition, loadFile, type Place } from '../project/definitions.ts';
import type { ExitCode } from '../project/exit-codes.ts';
import type { CommandIo } from '../project/host.ts';
import {
  type AdhocOptions,
  adhocLine,
  type JournalCommand,
  runLine,
} from '../project/journal/command-line.ts';
import { findProject, type Project, type ProjectOptions, readConfig } from '../project/project.ts';
import { type DriveOptions, drive } from './drive.ts';
import { type InputOptions, readAll, readInput } from './inputs.ts';

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

interface ProjectAndIo {
  readonly project: Project;
  readonly io: CommandIo;
}

/**
 * Writes a workflow with one agent step where a resume finds it again, and loads it. The prompt is an input of it, so
 * that nothing in the prompt means anything else. Throws USAGE.
 */
async function adhocDefinition(
  agent: string,
  options: AdhocOptions,
  place: ProjectAndIo,
): Promise<{ readonly definition: Definition; readonly input: { readonly prompt: string } }> {
  const prompt = await promptOf(options, place.io);
  await requireAgent(agent, place);
  const text = workflowText(agent, options);
  const name = createHash('sha256').update(text).digest('hex').slice(0, 16);
  const folder = join(place.project.stateDir, 'adhoc');
  const file = join(folder, `${name}.yaml`);
  mkdirSync(folder, { recursive: true });
  writeFileSync(file, text);
  return { definition: await loadFile(file, place), input: { prompt } };
}

async function promptOf({ prompt, promptFile }: AdhocOptions, io: CommandIo): Promise<string> {
  if ((prompt === undefined) === (promptFile === undefined))
    throw new RepriseError('USAGE', '--agent needs either --prompt or --prompt-file', {
      hint: 'for example: reprise run --agent claude --prompt "Fix the failing test."',
    });
  const text = await (promptFile === undefined
    ? prompt === '-'
      ? readAll(io.stdin)
      : prompt
    : readPromptFile(promptFile, io));
  if (text === undefined || text.trim() === '') throw new RepriseError('USAGE', 'the prompt is empty');
  return text;
}

function readPromptFile(file: string, io: CommandIo): Promise<string> | string {
  if (file === '-') return readAll(io.stdin);
  try {
    return readFileSync(resolve(io.cwd, file), 'utf8');
  } catch (cause) {
    throw new RepriseError('USAGE', `--prompt-file ${file} cannot be read`, {
      cause,
      hint: 'check the path; it counts from the current folder',
    });
  }
}

async function requireAgent(agent: string, place: ProjectAndIo): Promise<void> {
  const agents = await loadAgents(place, await readConfig(place.project, place.io));
  if (agents.has(agent)) return;
  const guess = nearest(agent, agents.keys());
  throw new RepriseError('USAGE', `there is no agent ${agent}`, {
    hint: guess
      ? `did you mean ${guess}?`
      : `there are ${[...agents.keys()].join(', ')}; define others under \`agents\` in reprise.yaml`,
  });
}

/** JSON is YAML too, whatever stands in the values. */
function workflowText(agent: string, { concurrency = 1, check = [], permissions }: AdhocOptions): string {
  const step = {
    id: 'work',
    agent,
    prompt: `\${{ inputs.prompt }}`,
    ...(concurrency > 1 ? { concurrency } : {}),
    ...(check.length > 0 ? { checks: check } : {}),
    ...(permissions === undefined ? {} : { permissions }),
  };
  const workflow = { name: agent, inputs: { prompt: { type: 'string', required: true } }, steps: [step] };
  return `${JSON.stringify(workflow, null, 2)}\n`;
}
