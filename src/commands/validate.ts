import { existsSync } from 'node:fs';
import { RepriseError } from '../core/index.ts';
import {
  agentsFor,
  type CommandIo,
  configFile,
  displayPath,
  type ExitCode,
  exitCodes,
  findProject,
  knownWorkflows,
  loadAgents,
  loadDefinition,
  type ProjectContext,
  type ProjectOptions,
  readConfig,
  writeLines,
} from '../project/index.ts';
import { jsonText } from '../terminal/index.ts';
import { safeLine } from '../view/index.ts';
import { DefinitionError, type Problem } from '../workflow/index.ts';

export interface ValidateCommandOptions extends ProjectOptions {
  /** Names or paths of workflows. Defaults to every workflow of the project and reprise.yaml. */
  readonly targets?: readonly string[] | undefined;
  readonly json?: boolean | undefined;
}

interface ValidationResult {
  readonly target: string;
  readonly workflow?: string | undefined;
  readonly error?: RepriseError | undefined;
}

/** Checks definitions without running anything, and reports every problem. */
export async function validateCommand(
  { io }: { readonly io: CommandIo },
  options: ValidateCommandOptions,
): Promise<ExitCode> {
  const place = { project: findProject(io, options), io };
  const targets = options.targets?.length ? options.targets : allTargets(place);
  const verdicts: ValidationResult[] = [];
  for (const target of targets) verdicts.push(await validate(target, place));
  if (options.json) for (const verdict of verdicts) writeLines(io.out, jsonText(describe(verdict)));
  else await print(verdicts, io);
  return verdicts.some(({ error }) => error) ? exitCodes.usage : exitCodes.ok;
}

function allTargets({ project, io }: ProjectContext): readonly string[] {
  const config = configFile(project);
  const files = [...knownWorkflows(project).values(), ...(existsSync(config) ? [config] : [])];
  return files.map(file => displayPath(io, file));
}

async function validate(target: string, place: ProjectContext): Promise<ValidationResult> {
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

async function print(verdicts: readonly ValidationResult[], io: CommandIo): Promise<void> {
  if (verdicts.length === 0)
    writeLines(io.err, 'nothing to validate: no workflows in .reprise/workflows and no reprise.yaml');
  const { formatError } = await import('../terminal/index.ts');
  const reported = new Set<string>();
  for (const { target, workflow, error } of verdicts) {
    // An invalid agent file fails every workflow that names the agent with the same error.
    if (error && reported.has(error.message))
      writeLines(io.err, `${target} cannot be checked for the same reason`);
    else if (error) writeLines(io.err, formatError(error, { color: io.color.err }));
    else writeLines(io.out, safeLine(`ok ${target}${workflow === undefined ? '' : ` (${workflow})`}`));
    if (error) reported.add(error.message);
  }
}

const describe = ({ target, workflow, error }: ValidationResult) => ({
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
