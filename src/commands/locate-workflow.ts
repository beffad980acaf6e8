import { existsSync, readdirSync, statSync } from 'node:fs';
import { basename, extname, join, resolve } from 'node:path';
import { RepriseError } from '../core/errors.ts';
import { nearest } from '../core/suggest.ts';
import { displayPath, type Project } from '../project/project.ts';
import type { CommandIo } from './io.ts';

/** A file that may define a workflow; for a module with several, which of its exports. */
export interface WorkflowLocation {
  readonly file: string;
  readonly exportName?: string | undefined;
}

const yamlExtensions = ['.yaml', '.yml'];
const moduleExtensions = ['.mjs', '.js', '.ts', '.mts'];

export const isYamlFile = (file: string): boolean => yamlExtensions.includes(extname(file));
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
export function locateWorkflow(
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
export function locateSource(source: string, { root }: Project): WorkflowLocation {
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
