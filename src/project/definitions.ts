import { existsSync, readdirSync, statSync } from 'node:fs';
import { basename, dirname, extname, join, relative, resolve } from 'node:path';
import { RepriseError } from '../core/errors.ts';
import type { HistoryEvent } from '../core/events.ts';
import { nearest } from '../core/suggest.ts';
import { workerSource } from '../worker/contract.ts';
import type { WorkflowModel } from '../workflow/model.ts';
import { DefinitionError, type Problem } from '../workflow/problems.ts';
import type { WorkflowText } from '../workflow/yaml/load.ts';
import { type CommandIo, everyTime } from './host.ts';
import { displayPath, type Project, readText } from './project.ts';

/** A file that may define a workflow; for a module with several, which of its exports. */
export interface WorkflowLocation {
  readonly file: string;
  readonly exportName?: string | undefined;
}

const yamlExtensions = ['.yaml', '.yml'];
const moduleExtensions = ['.mjs', '.js', '.ts', '.mts'];

const isYamlFile = (file: string): boolean => yamlExtensions.includes(extname(file));
const isWorkflowFile = (file: string): boolean =>
  isYamlFile(file) || (moduleExtensions.includes(extname(file)) && !/\.(test|spec|d)\.m?[jt]s$/.test(file));

const workflowsFolder = ({ root }: Project): string => join(root, '.reprise', 'workflows');

/** The workflows of the project by name; a name stands for the file that the order of extensions puts first. */
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

/** Finds what a person names: a workflow of the project, or a path from the current folder. Throws WORKFLOW_NOT_FOUND. */
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

/** Finds the definition that a run recorded, relative to the root of the project. Throws WORKFLOW_NOT_FOUND. */
function locateSource(source: string, { root }: Project): WorkflowLocation {
  for (const { name, exportName } of readings(source)) {
    const file = fileAt(resolve(root, name));
    if (file) return { file, exportName };
  }
  throw new RepriseError('WORKFLOW_NOT_FOUND', `the definition of the run, ${source}, no longer exists`, {
    hint: 'put the file back where it was when the run started',
  });
}

/** A `#` divides a module from the name of an export, unless it is part of the file's name. */
function readings(reference: string): readonly { readonly name: string; readonly exportName?: string }[] {
  const hash = reference.lastIndexOf('#');
  if (hash <= 0) return [{ name: reference }];
  return [{ name: reference }, { name: reference.slice(0, hash), exportName: reference.slice(hash + 1) }];
}

const fileAt = (path: string): string | undefined =>
  statSync(path, { throwIfNoEntry: false })?.isFile() ? path : undefined;

interface Surroundings {
  readonly known: ReadonlyMap<string, string>;
  readonly project: Project;
  readonly io: CommandIo;
}

function notFound(reference: string, { known, project, io }: Surroundings): RepriseError {
  const isPath = /[/\\]/.test(reference) || isWorkflowFile(reference.replace(/#.*$/, ''));
  const names = [...known.keys()];
  const guess = nearest(reference, names);
  const folder = displayPath(io, workflowsFolder(project));
  const message = isPath ? `there is no file ${reference}` : `there is no workflow ${reference}`;
  if (guess)
    return new RepriseError('WORKFLOW_NOT_FOUND', message, { hint: `did you mean: reprise run ${guess}` });
  const hint =
    names.length > 0
      ? `workflows of this project: ${names.join(', ')}`
      : `there are none in ${folder}; give the path of a file`;
  return new RepriseError('WORKFLOW_NOT_FOUND', message, { hint });
}

/** A workflow and where it came from. */
export interface Definition {
  readonly model: WorkflowModel;
  readonly kind: 'yaml' | 'module';
  /** Relative to the root of the project, so that a resume finds it again. */
  readonly source: string;
}

export interface Place {
  readonly project: Project;
  readonly io: CommandIo;
}

/** Loads what a person names. Throws WORKFLOW_NOT_FOUND, DEFINITION_INVALID. */
export const loadDefinition = async (reference: string, place: Place): Promise<Definition> =>
  loadLocation(locateWorkflow(reference, place), place);

/** Loads a file of which the path is known. Throws DEFINITION_INVALID. */
export const loadFile = (file: string, place: Place): Promise<Definition> => loadLocation({ file }, place);

/** Loads the definition that a run was started with. Throws WORKFLOW_NOT_FOUND, DEFINITION_INVALID. */
export async function loadRecordedDefinition(
  history: readonly HistoryEvent[],
  place: Place,
): Promise<Definition> {
  const [started] = history;
  const source = started?.type === 'run.started' ? started.data.source : undefined;
  if (source === undefined) {
    throw new RepriseError(
      'WORKFLOW_NOT_FOUND',
      `run ${started?.runId} was started by a program that did not say where its workflow is defined`,
      {
        hint: 'go on with it from that program',
      },
    );
  }
  if (source === workerSource) {
    const { iterationWorkflow } = await import('../worker/iteration.ts');
    return { model: iterationWorkflow({ branch: 'main' }), kind: 'module', source };
  }
  return loadLocation(locateSource(source, place.project), place);
}

async function loadLocation(location: WorkflowLocation, place: Place): Promise<Definition> {
  const { file } = location;
  const source = relative(place.project.root, file);
  const revise = place.io.host?.revise ?? (model => model);
  if (isYamlFile(file)) {
    const once = place.project.host?.once ?? everyTime;
    const model = await once(`workflow ${file} seen from ${place.io.cwd}`, () => loadYaml(file, place));
    return { model: revise(model), kind: 'yaml', source };
  }
  const { loadModule } = await import('./load-module.ts');
  const displayFile = displayPath(place.io, file);
  const { workflow, exportName } = await loadModule({ ...location, displayFile, root: place.project.root });
  return {
    model: revise(workflow.model),
    kind: 'module',
    source: exportName ? `${source}#${exportName}` : source,
  };
}

async function loadYaml(file: string, { project, io }: Place): Promise<WorkflowModel> {
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
