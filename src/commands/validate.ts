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
  isYamlFile,
  knownWorkflows,
  loadAgents,
  loadDefinition,
  type ProjectContext,
  type ProjectOptions,
  readConfig,
  writeLines,
} from '../project/index.ts';
import { count, jsonText, shellWord } from '../terminal/index.ts';
import { safeLine } from '../view/index.ts';
import { DefinitionError, type Problem } from '../workflow/index.ts';

export interface ValidateCommandOptions extends ProjectOptions {
  /** Names or paths of workflows. Defaults to every YAML workflow of the project and reprise.yaml. */
  readonly targets?: readonly string[] | undefined;
  readonly json?: boolean | undefined;
}

interface ValidationResult {
  readonly target: string;
  readonly workflow?: string | undefined;
  readonly error?: RepriseError | undefined;
}

/** Checks definitions without running them, and reports every problem. Loads the code of a module only if it is named. */
export async function validateCommand(
  { io }: { readonly io: CommandIo },
  options: ValidateCommandOptions,
): Promise<ExitCode> {
  const place = { project: findProject(io, options), io };
  const { targets, unchecked } = options.targets?.length
    ? { targets: options.targets, unchecked: [] }
    : allTargets(place);
  const verdicts: ValidationResult[] = [];
  for (const target of targets) verdicts.push(await validate(target, place));
  if (options.json) for (const verdict of verdicts) writeLines(io.out, jsonText(describe(verdict)));
  else await print(verdicts, io);
  noteUnchecked(unchecked, io);
  if (verdicts.length + unchecked.length === 0)
    writeLines(io.err, 'nothing to validate: no workflows in .reprise/workflows and no reprise.yaml');
  return verdicts.some(({ error }) => error) ? exitCodes.usage : exitCodes.ok;
}

interface ValidationTargets {
  readonly targets: readonly string[];
  /** Modules. Loading one runs its code, which may come from an unreviewed repository. */
  readonly unchecked: readonly string[];
}

function allTargets({ project, io }: ProjectContext): ValidationTargets {
  const config = configFile(project);
  const workflows = [...knownWorkflows(project).values()];
  const files = [...workflows.filter(isYamlFile), ...(existsSync(config) ? [config] : [])];
  const show = (file: string) => displayPath(io, file);
  return { targets: files.map(show), unchecked: workflows.filter(file => !isYamlFile(file)).map(show) };
}

function noteUnchecked(modules: readonly string[], io: CommandIo): void {
  const [first] = modules;
  if (first === undefined) return;
  const what = count(modules.length, 'TypeScript workflow');
  const files = modules.length === 1 ? 'its file' : 'their files';
  writeLines(
    io.err,
    `${what} not checked, because that runs the code; to check, name ${files}: reprise validate ${shellWord(first)}`,
  );
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
