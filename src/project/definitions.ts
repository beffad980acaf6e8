import { existsSync, readdirSync, statSync } from 'node:fs';
import { basename, dirname, extname, join, relative, resolve } from 'node:path';
import { type HistoryEvent, nearest, RepriseError } from '../core/index.ts';
import { recordedPath, resolveRecorded } from '../engine/index.ts';
import { workerSource } from '../worker/index.ts';
import { DefinitionError, type Problem, type WorkflowModel } from '../workflow/index.ts';
import type { WorkflowText } from '../workflow/yaml/index.ts';
import { type CommandIo, everyTime } from './host.ts';
import { displayPath, type Project, type ProjectContext, readText } from './project.ts';

/** File of a workflow, and the name of the export if a module has several. */
export interface WorkflowLocation {
  readonly file: string;
  readonly exportName?: string | undefined;
}

const yamlExtensions = ['.yaml', '.yml'];
const moduleExtensions = ['.mjs', '.js', '.ts', '.mts'];

/** Returns true for a file that is parsed. Loading any other workflow runs its code. */
export const isYamlFile = (file: string): boolean => yamlExtensions.includes(extname(file));
const isWorkflowFile = (file: string): boolean =>
  isYamlFile(file) || (moduleExtensions.includes(extname(file)) && !/\.(test|spec|d)\.m?[jt]s$/.test(file));

const workflowsFolder = ({ root }: Project): string => join(root, '.reprise', 'workflows');

/** Returns the workflows of the project by name. If several files have the same name, YAML wins over modules. */
export function knownWorkflows(project: Project): ReadonlyMap<string, string> {
  const folder = workflowsFolder(project);
  const known = new Map<string, string>();
  if (!existsSync(folder)) return known;
  const files = readdirSync(folder).filter(isWorkflowFile).sort();
  for (const extension of [...yamlExtensions, ...moduleExtensions]) {
    for (const file of files.filter(name => extname(name) === extension)) {
      const name = basename(file, extension);
      if (!known.has(name)) known.set(name, join(folder, file));
    }
  }
  return known;
}

/** Finds a workflow by name, or by path relative to the current folder. Throws WORKFLOW_NOT_FOUND. */
function locateWorkflow(
  reference: string,
  { project, io }: { readonly project: Project; readonly io: CommandIo },
): WorkflowLocation {
  const known = knownWorkflows(project);
  for (const { name, exportName } of readings(reference)) {
    const file = known.get(name) ?? fileAt(resolve(io.cwd, name));
    if (file) return { file, exportName };
  }
  throw notFound(reference, { known, project, io });
}

/** Finds the definition that a run has recorded, relative to the project's root. Throws WORKFLOW_NOT_FOUND. */
function locateSource(source: string, project: Project): WorkflowLocation {
  for (const { name, exportName } of readings(source)) {
    const file = fileAt(resolveRecorded(project, name));
    if (file) return { file, exportName };
  }
  throw new RepriseError('WORKFLOW_NOT_FOUND', `the definition of the run, ${source}, no longer exists`, {
    hint: 'restore the file at this path',
  });
}

/** Returns both readings of a `#`: as part of the file's name, and as the separator before the name of an export. */
function readings(reference: string): readonly { readonly name: string; readonly exportName?: string }[] {
  const hash = reference.lastIndexOf('#');
  if (hash <= 0) return [{ name: reference }];
  return [{ name: reference }, { name: reference.slice(0, hash), exportName: reference.slice(hash + 1) }];
}

/** Accepts a YAML file of any kind, because reading it reports one that is not a regular file. */
function fileAt(path: string): string | undefined {
  const found = statSync(path, { throwIfNoEntry: false });
  return found?.isFile() || (found && !found.isDirectory() && isYamlFile(path)) ? path : undefined;
}

interface WorkflowLookup {
  readonly known: ReadonlyMap<string, string>;
  readonly project: Project;
  readonly io: CommandIo;
}

function notFound(reference: string, { known, project, io }: WorkflowLookup): RepriseError {
  const isPath = /[/\\]/.test(reference) || isWorkflowFile(reference.replace(/#.*$/, ''));
  const names = [...known.keys()];
  const guess = nearest(reference, names);
  const folder = displayPath(io, workflowsFolder(project));
  const message = isPath ? `cannot find file ${reference}` : `cannot find workflow ${reference}`;
  if (guess)
    return new RepriseError('WORKFLOW_NOT_FOUND', message, { hint: `did you mean: reprise run ${guess}` });
  const hint =
    names.length > 0
      ? `workflows of this project: ${names.join(', ')}`
      : `${folder} contains no workflows; pass the path of a file`;
  return new RepriseError('WORKFLOW_NOT_FOUND', message, { hint });
}

/** A loaded workflow and its source. */
export interface LoadedDefinition {
  readonly model: WorkflowModel;
  readonly kind: 'yaml' | 'module';
  /** Path relative to the project's root, so that a resume can find it again. */
  readonly source: string;
}

/** Loads a workflow by name or path. Throws WORKFLOW_NOT_FOUND, DEFINITION_INVALID. */
export const loadDefinition = async (reference: string, context: ProjectContext): Promise<LoadedDefinition> =>
  loadLocation(locateWorkflow(reference, context), context);

/** Loads a workflow from an existing file. Throws DEFINITION_INVALID. */
export const loadFile = (file: string, context: ProjectContext): Promise<LoadedDefinition> =>
  loadLocation({ file }, context);

/** Loads the definition that a run has recorded. Throws WORKFLOW_NOT_FOUND, DEFINITION_INVALID. */
export async function loadRecordedDefinition(
  history: readonly HistoryEvent[],
  context: ProjectContext,
): Promise<LoadedDefinition> {
  const [started] = history;
  const source = started?.type === 'run.started' ? started.data.source : undefined;
  if (source === undefined) {
    throw new RepriseError(
      'WORKFLOW_NOT_FOUND',
      `run ${started?.runId} was started by a program that did not record where its workflow is defined`,
      {
        hint: 'resume it from that program',
      },
    );
  }
  if (source === workerSource) {
    const { iterationWorkflow } = await import('../worker/iteration.ts');
    return { model: iterationWorkflow({ branch: 'main' }), kind: 'module', source };
  }
  return loadLocation(locateSource(source, context.project), context);
}

/** Only a workflow that a command has written is in the state folder, so others need not look it up. */
const sourceOf = (project: Project, file: string): string =>
  /[/\\]adhoc[/\\][^/\\]*$/.test(file) ? recordedPath(project, file) : relative(project.root, file);

async function loadLocation(location: WorkflowLocation, context: ProjectContext): Promise<LoadedDefinition> {
  const { file } = location;
  const source = sourceOf(context.project, file);
  const revise = context.io.host?.revise ?? (model => model);
  if (isYamlFile(file)) {
    const once = context.project.host?.once ?? everyTime;
    const model = await once(`workflow ${file} seen from ${context.io.cwd}`, () => loadYaml(file, context));
    return { model: revise(model), kind: 'yaml', source };
  }
  const { loadModule } = await import('./load-module.ts');
  const displayFile = displayPath(context.io, file);
  const { workflow, exportName } = await loadModule({ ...location, displayFile, root: context.project.root });
  return {
    model: revise(workflow.model),
    kind: 'module',
    source: exportName ? `${source}#${exportName}` : source,
  };
}

async function loadYaml(file: string, { project, io }: ProjectContext): Promise<WorkflowModel> {
  const { loadWorkflow } = await import('../workflow/yaml/load.ts');
  const refuse = (problem: Problem) => new DefinitionError([problem]);
  const read = (path: string): WorkflowText => {
    const displayFile = displayPath(io, path);
    return { file: path, displayFile, text: readText({ file: path, displayFile, refuse }) };
  };
  return loadWorkflow({
    ...read(file),
    resolve: (reference, fromFile) => {
      const isPath = /^\.{0,2}\//.test(reference);
      const child = isPath ? resolve(dirname(fromFile), reference) : yamlWorkflow(project, reference);
      return child !== undefined && existsSync(child) ? read(child) : undefined;
    },
    readPrompt: (reference, fromFile) => {
      const prompt = resolve(dirname(fromFile), reference);
      return existsSync(prompt) ? { ...read(prompt), displayFile: displayPath(io, prompt) } : undefined;
    },
    known: () => knownWorkflows(project).keys(),
  });
}

function yamlWorkflow(project: Project, name: string): string | undefined {
  const file = knownWorkflows(project).get(name);
  return file && isYamlFile(file) ? file : undefined;
}
