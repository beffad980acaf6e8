import type { Json } from '../../core/json.ts';
import type { Scope, StepModel, WorkflowModel } from '../model.ts';
import { DefinitionError } from '../problems.ts';
import { loadWorkflow } from './load.ts';

export interface Files {
  /** Other workflows by reference. */
  readonly others?: Readonly<Record<string, string>>;
  /** Prompts by path. */
  readonly prompts?: Readonly<Record<string, string>>;
}

/** Loads a workflow from text. */
export function load(text: string, { others = {}, prompts = {} }: Files = {}): WorkflowModel {
  return loadWorkflow({
    file: '/project/main.yaml',
    displayFile: 'main.yaml',
    text,
    resolve: reference => {
      const child = Object.hasOwn(others, reference) ? others[reference] : undefined;
      if (child === undefined) return undefined;
      return { file: `/project/${reference}`, displayFile: reference, text: child };
    },
    readPrompt: reference => {
      const prompt = Object.hasOwn(prompts, reference) ? prompts[reference] : undefined;
      return prompt === undefined ? undefined : { displayFile: reference, text: prompt };
    },
  });
}

/** Returns the error message of an invalid workflow. Throws if the workflow is valid. */
export function problemsIn(text: string, files?: Files): string {
  try {
    load(text, files);
  } catch (error) {
    if (error instanceof DefinitionError) return `\n${error.message}\n`;
    throw error;
  }
  throw new Error('expected the workflow to be invalid');
}

/** Returns each message, prefixed with the text that its carets point at. */
export function shortProblemsIn(text: string, files?: Files): readonly string[] {
  try {
    load(text, files);
  } catch (error) {
    if (error instanceof DefinitionError)
      return error.problems.map(({ message, excerpt = '' }) => `[${pointedAt(excerpt)}] ${message}`);
    throw error;
  }
  return [];
}

function pointedAt(excerpt: string): string {
  const [line = '', carets = ''] = excerpt.split('\n');
  return line.slice(carets.indexOf('^'), carets.length);
}

export function stepOf(model: WorkflowModel, id: string): StepModel {
  const step = model.steps.find(candidate => candidate.id === id);
  if (!step) throw new Error(`no step ${id}`);
  return step;
}

/** Returns the body of a step. Throws if it is of a different kind. */
export function bodyOf<Kind extends StepModel['body']['kind']>(model: WorkflowModel, id: string, kind: Kind) {
  const { body } = stepOf(model, id);
  if (body.kind !== kind) throw new Error(`${id} is a ${body.kind} step`);
  return body as Extract<StepModel['body'], { kind: Kind }>;
}

export const scopeOf = (given: Partial<Scope> = {}): Scope => ({
  inputs: {},
  steps: {},
  status: 'success',
  ...given,
});

export const succeeded = (outputs: Json) => ({ outcome: 'success', conclusion: 'success', outputs }) as const;
