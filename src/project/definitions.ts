import { existsSync } from 'node:fs';
import { dirname, relative, resolve } from 'node:path';
import type { CommandIo } from '../commands/io.ts';
import {
  isYamlFile,
  knownWorkflows,
  locateSource,
  locateWorkflow,
  type WorkflowLocation,
} from '../commands/locate-workflow.ts';
import { readText } from '../commands/read-text.ts';
import { RepriseError } from '../core/errors.ts';
import type { HistoryEvent } from '../core/events.ts';
import { workerSource } from '../worker/contract.ts';
import type { WorkflowModel } from '../workflow/model.ts';
import { DefinitionError, type Problem } from '../workflow/problems.ts';
import type { WorkflowText } from '../workflow/yaml/load.ts';
import { everyTime } from './host.ts';
import { displayPath, type Project } from './project.ts';

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
