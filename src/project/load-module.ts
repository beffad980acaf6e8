import { createRequire } from 'node:module';
import { extname, join } from 'node:path';
import { pathToFileURL } from 'node:url';
import { nearest, RepriseError } from '../core/index.ts';
import { isWorkflow, type Workflow } from '../workflow/builder/index.ts';
import type { WorkflowLocation } from './definitions.ts';

export interface ModuleOptions extends WorkflowLocation {
  /** Path to show in messages. */
  readonly displayFile: string;
  /** Folder whose `tsx` loads TypeScript, if Node.js cannot. */
  readonly root: string;
}

export interface LoadedModule {
  readonly workflow: Workflow;
  /** Name of the export, if it is needed to find the workflow again. */
  readonly exportName: string | undefined;
}

/** Imports a module and finds its workflow. Throws DEFINITION_INVALID, WORKFLOW_NOT_FOUND. */
export async function loadModule(options: ModuleOptions): Promise<LoadedModule> {
  const { file, displayFile, exportName } = options;
  if (/\.m?ts$/.test(extname(file))) await prepareTypeScript(options);
  const workflows = workflowsOf(await importModule(options));
  if (exportName !== undefined) {
    const workflow = workflows.get(exportName);
    if (workflow) return { workflow, exportName };
    throw noSuchExport(displayFile, exportName, [...workflows.keys()]);
  }
  const [first, ...others] = workflows;
  const defaultExport = workflows.get('default');
  if (defaultExport) return { workflow: defaultExport, exportName: undefined };
  if (first && others.length === 0) return { workflow: first[1], exportName: undefined };
  const names = [...workflows.keys()];
  throw names.length > 1 ? severalExports(displayFile, names) : noWorkflow(displayFile);
}

async function importModule({ file, displayFile }: ModuleOptions): Promise<object> {
  try {
    return await import(pathToFileURL(file).href);
  } catch (thrown) {
    if (thrown instanceof RepriseError) throw thrown;
    const { message, code } = describe(thrown);
    // If the project has installed its own copy of Reprise, `instanceof` does not match, but the code does.
    const prefix = code === 'DEFINITION_INVALID' ? '' : `cannot load ${displayFile}: `;
    const missingReprise = code === 'ERR_MODULE_NOT_FOUND' && /package 'reprise'/.test(message);
    throw new RepriseError('DEFINITION_INVALID', `${prefix}${message}`, {
      cause: thrown,
      hint: missingReprise
        ? 'install it in the project: npm install --save-dev reprise'
        : `see the stack trace: REPRISE_DEBUG=1 reprise validate ${displayFile}`,
    });
  }
}

function describe(thrown: unknown): { readonly message: string; readonly code: unknown } {
  if (!(thrown instanceof Error)) return { message: String(thrown), code: undefined };
  const code = 'code' in thrown ? thrown.code : undefined;
  return { message: code === undefined ? `${thrown.name}: ${thrown.message}` : thrown.message, code };
}

function workflowsOf(module: object): ReadonlyMap<string, Workflow> {
  const found = new Map<string, Workflow>();
  for (const [name, value] of Object.entries(module)) if (isWorkflow(value)) found.set(name, value);
  return found;
}

/** Registers the project's `tsx` if Node.js does not strip types itself, which it does since 22.18. */
async function prepareTypeScript({ root, displayFile }: ModuleOptions): Promise<void> {
  if (Reflect.get(process.features, 'typescript')) return;
  const project = createRequire(join(root, 'package.json'));
  let loader: string;
  try {
    loader = project.resolve('tsx/esm/api');
  } catch {
    throw new RepriseError(
      'DEFINITION_INVALID',
      `this Node.js (${process.version}) cannot load ${displayFile}`,
      {
        hint: 'install tsx in the project (npm install --save-dev tsx), use Node.js 22.18 or newer, or write the workflow as .mjs',
      },
    );
  }
  const { register } = (await import(pathToFileURL(loader).href)) as { register: () => unknown };
  register();
}

function noSuchExport(displayFile: string, name: string, names: readonly string[]): RepriseError {
  const guess = nearest(name, names);
  const hint = guess ? `did you mean ${displayFile}#${guess}?` : exportsHint(displayFile, names);
  return new RepriseError('WORKFLOW_NOT_FOUND', `${displayFile} exports no workflow named ${name}`, { hint });
}

const severalExports = (displayFile: string, names: readonly string[]) =>
  new RepriseError('WORKFLOW_NOT_FOUND', `${displayFile} exports several workflows`, {
    hint: exportsHint(displayFile, names),
  });

const noWorkflow = (displayFile: string) =>
  new RepriseError('DEFINITION_INVALID', `${displayFile} exports no workflow`, {
    hint: "export the result of workflow(...): export default workflow('name', { steps })",
  });

const exportsHint = (displayFile: string, names: readonly string[]): string | undefined =>
  names.length > 0 ? `name one: ${names.map(name => `${displayFile}#${name}`).join(', ')}` : undefined;
