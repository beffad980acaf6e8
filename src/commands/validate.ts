import { existsSync } from 'node:fs';
import { RepriseError } from '../core/errors.ts';
import { agentsFor, loadAgents } from '../project/agents.ts';
import { knownWorkflows, loadDefinition, type Place } from '../project/definitions.ts';
import { type ExitCode, exitCodes } from '../project/exit-codes.ts';
import { type CommandIo, writeLines } from '../project/host.ts';
import { configFile, displayPath, findProject, type ProjectOptions, readConfig } from '../project/project.ts';
import { jsonText } from '../terminal/text.ts';
import { safeLine } from '../view/safe-text.ts';
import { DefinitionError, type Problem } from '../workflow/problems.ts';

export interface ValidateCommandOptions extends ProjectOptions {
  /** Names or paths; by default every workflow of the project and its settings. */
  readonly targets?: readonly string[] | undefined;
  readonly json?: boolean | undefined;
}

interface Verdict {
  readonly target: string;
  readonly workflow?: string | undefined;
  readonly error?: RepriseError | undefined;
}

/** Checks definitions without running anything: all problems of all of them. */
export async function validateCommand(
  { io }: { readonly io: CommandIo },
  options: ValidateCommandOptions,
): Promise<ExitCode> {
  const place = { project: findProject(io, options), io };
  const targets = options.targets?.length ? options.targets : everything(place);
  const verdicts: Verdict[] = [];
  for (const target of targets) verdicts.push(await judge(target, place));
  if (options.json) for (const verdict of verdicts) writeLines(io.out, jsonText(describe(verdict)));
  else await print(verdicts, io);
  return verdicts.some(({ error }) => error) ? exitCodes.usage : exitCodes.ok;
}

function everything({ project, io }: Place): readonly string[] {
  const config = configFile(project);
  const files = [...knownWorkflows(project).values(), ...(existsSync(config) ? [config] : [])];
  return files.map(file => displayPath(io, file));
}

async function judge(target: string, place: Place): Promise<Verdict> {
  try {
    if (target === displayPath(place.io, configFile(place.project))) {
      await loadAgents(place, await readConfig(place.project, place.io));
      return { target };
    }
    const { model } = await loadDefinition(target, place);
    await agentsFor(model, place, () => readConfig(place.project, place.io));
    return { target, workflow: model.name };
  } catch (error) {
    if (error instanceof RepriseError) return { target, error };
    throw error;
  }
}

async function print(verdicts: readonly Verdict[], io: CommandIo): Promise<void> {
  if (verdicts.length === 0)
    writeLines(io.err, 'nothing to validate: no workflows in .reprise/workflows and no reprise.yaml');
  const { formatError } = await import('../terminal/index.ts');
  const said = new Set<string>();
  for (const { target, workflow, error } of verdicts) {
    // Agents are checked for every workflow that names one, and their file may be wrong.
    if (error && said.has(error.message)) writeLines(io.err, `${target} cannot be checked because of that`);
    else if (error) writeLines(io.err, formatError(error, { color: io.color.err }));
    else writeLines(io.out, safeLine(`ok ${target}${workflow === undefined ? '' : ` (${workflow})`}`));
    if (error) said.add(error.message);
  }
}

const describe = ({ target, workflow, error }: Verdict) => ({
  file: target,
  ok: error === undefined,
  ...(workflow === undefined ? {} : { workflow }),
  problems: error ? problemsOf(error) : [],
});

function problemsOf(error: RepriseError): readonly object[] {
  const problems: readonly Problem[] = error instanceof DefinitionError ? error.problems : [error];
  return problems.map(({ message, hint, position }) => ({
    code: error.code,
    message,
    ...(hint === undefined ? {} : { hint }),
    ...(position === undefined ? {} : { file: position.file, line: position.line, column: position.column }),
  }));
}
