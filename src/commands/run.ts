import { createHash } from 'node:crypto';
import { mkdirSync, writeFileSync } from 'node:fs';
import { join, resolve } from 'node:path';
import { type JsonObject, nearest, RepriseError } from '../core/index.ts';
import { FileRefusedError, fileLimits, readBoundedText } from '../effects/index.ts';
import {
  type CommandIo,
  type ExitCode,
  findProject,
  type LoadedDefinition,
  loadAgents,
  loadDefinition,
  loadFile,
  type ProjectContext,
  type ProjectOptions,
  readConfig,
} from '../project/index.ts';
import { type AdhocOptions, adhocLine, type JournalCommand, runLine } from '../project/journal/index.ts';
import { type ExecuteRunOptions, executeRun } from './execute-run.ts';
import { type InputOptions, inputRefused, readAll, readInput } from './inputs.ts';

export interface RunCommandOptions extends ExecuteRunOptions, InputOptions, AdhocOptions, ProjectOptions {
  /** Name of a workflow of the project, or path of a file, with `#name` for one of several exports. Excludes `agent`. */
  readonly workflow?: string | undefined;
}

/** Runs a workflow or a single agent. Throws before anything is written if the definition or the input is invalid. */
export async function runCommand(
  { io }: { readonly io: CommandIo },
  options: RunCommandOptions,
): Promise<ExitCode> {
  const project = findProject(io, options);
  const { definition, input, command } = await runPlanOf(options, { project, io });
  const { model: workflow, source } = definition;
  return executeRun({
    io,
    project,
    definition,
    options,
    command,
    begin: (engine, runOptions) => engine.start({ ...runOptions, workflow, input, source }),
  });
}

interface RunPlan {
  readonly definition: LoadedDefinition;
  readonly input: JsonObject;
  readonly command: JournalCommand;
}

async function runPlanOf(options: RunCommandOptions, context: ProjectContext): Promise<RunPlan> {
  const { workflow, agent } = options;
  if (agent === undefined && workflow !== undefined) {
    refuse(options, ['prompt', 'promptFile', 'concurrency', 'check', 'permissions'], 'requires --agent');
    const definition = await loadDefinition(workflow, context);
    const input = await readInput(options, { definition, io: context.io });
    checkInput(definition, input, workflow);
    return { definition, input, command: runLine(definition.source, input) };
  }
  if (agent !== undefined && workflow === undefined) {
    refuse(
      options,
      ['input', 'inputJson', 'inputFile'],
      'is for workflows and cannot be combined with --agent',
    );
    const { definition, input } = await adhocDefinition(agent, options, context);
    return { definition, input, command: adhocLine(agent, options, input) };
  }
  throw new RepriseError(
    'USAGE',
    agent ? 'a workflow and --agent cannot be combined' : 'nothing to run: no workflow and no agent given',
    {
      hint: 'name a workflow (reprise run <workflow>) or an agent (reprise run --agent claude --prompt "...")',
    },
  );
}

function refuse(options: RunCommandOptions, names: readonly (keyof RunCommandOptions)[], why: string): void {
  const context = names.find(name => options[name] !== undefined);
  if (context === undefined) return;
  const flag = context.replace(/[A-Z]/g, letter => `-${letter.toLowerCase()}`);
  throw new RepriseError('USAGE', `--${flag} ${why}`);
}

function checkInput({ model }: LoadedDefinition, input: JsonObject, reference: string): void {
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

/**
 * Writes a workflow with one agent step into the state folder, where a resume finds it, and loads it. The prompt is an
 * input, so that no expression in it is evaluated. Throws USAGE.
 */
async function adhocDefinition(
  agent: string,
  options: AdhocOptions,
  context: ProjectContext,
): Promise<{ readonly definition: LoadedDefinition; readonly input: { readonly prompt: string } }> {
  const prompt = await promptOf(options, context.io);
  await requireAgent(agent, context);
  const text = workflowText(agent, options);
  const name = createHash('sha256').update(text).digest('hex').slice(0, 16);
  const folder = join(context.project.stateDir, 'adhoc');
  const file = join(folder, `${name}.yaml`);
  mkdirSync(folder, { recursive: true });
  writeFileSync(file, text);
  return { definition: await loadFile(file, context), input: { prompt } };
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
    return readBoundedText(resolve(io.cwd, file), { maxBytes: fileLimits.input, pipes: true });
  } catch (cause) {
    if (cause instanceof FileRefusedError) throw inputRefused(`--prompt-file ${file}`, cause);
    throw new RepriseError('USAGE', `--prompt-file ${file} cannot be read`, {
      cause,
      hint: 'check the path; it is relative to the current folder',
    });
  }
}

async function requireAgent(agent: string, context: ProjectContext): Promise<void> {
  const agents = await loadAgents(context, await readConfig(context.project, context.io));
  if (agents.has(agent)) return;
  const guess = nearest(agent, agents.keys());
  throw new RepriseError('USAGE', `there is no agent ${agent}`, {
    hint: guess
      ? `did you mean ${guess}?`
      : `known agents: ${[...agents.keys()].join(', ')}; define more under \`agents\` in reprise.yaml`,
  });
}

/** The workflow as JSON, which is valid YAML for any value. */
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
