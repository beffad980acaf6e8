import { type Position, RepriseError } from '../core/errors.ts';
import type { StepModel, WorkflowModel } from './model.ts';

/** One thing that is wrong with a definition. */
export interface Problem {
  readonly message: string;
  readonly hint?: string | undefined;
  readonly position?: Position | undefined;
  /** The line in question with a caret below it. */
  readonly excerpt?: string | undefined;
}

/** All that is wrong with a definition, at once, in the order of the file. */
export class DefinitionError extends RepriseError {
  override readonly name: string = 'DefinitionError';
  readonly problems: readonly Problem[];

  constructor(problems: readonly Problem[]) {
    super('DEFINITION_INVALID', problems.map(formatProblem).join('\n\n'), {
      position: problems[0]?.position,
    });
    this.problems = problems;
  }
}

/** `file:line:column: message`, the excerpt, and the hint. */
export function formatProblem({ message, hint, position, excerpt }: Problem): string {
  const where = position ? `${position.file}:${position.line}:${position.column}: ` : '';
  return [`${where}${message}`, excerpt, hint && `  hint: ${hint}`].filter(Boolean).join('\n');
}

/** The name of an artifact that was given no other: that of its file, without the extension. */
export const artifactName = (path: string): string =>
  (/[^/]*$/.exec(path.replace(/\/+$/, ''))?.[0] ?? '').replace(/(?<=.)\.[^.]*$/, '');

/** Why a path cannot be that of an artifact, as the rest of a sentence; `undefined` if it can. */
export function objectToArtifactPath(path: string): string | undefined {
  if (path.includes('\0')) return 'must not contain a NUL character';
  if (path.startsWith('/') || path.startsWith('~')) return 'must be relative to the workspace';
  const parts = path.split('/');
  if (parts.includes('..')) return 'must stay inside the workspace';
  if (parts.every(part => part === '' || part === '.')) return 'must name a file';
  return undefined;
}

/** An agent that a workflow wants to work with. */
export interface NamedAgent {
  readonly name: string;
  /** Path of the step that names it. */
  readonly step: string;
  /** Where it is named. */
  readonly position?: Position | undefined;
}

/** Every agent that a workflow names, judges and children included, in the order of the steps. */
export function agentNames(model: WorkflowModel): readonly NamedAgent[] {
  const named: NamedAgent[] = [];
  const seen = new Set<WorkflowModel>();
  const visit = ({ steps }: WorkflowModel, prefix: string): void => {
    for (const step of steps) {
      const path = `${prefix}${step.id}`;
      named.push(...namedBy(step).map(agent => ({ ...agent, step: path })));
      if (step.body.kind !== 'uses' || seen.has(step.body.workflow)) continue;
      // A child that is used twice names the same agents in the same places.
      seen.add(step.body.workflow);
      visit(step.body.workflow, `${path}/`);
    }
  };
  visit(model, '');
  return named;
}

function namedBy({ body, fanOut, position }: StepModel): readonly Omit<NamedAgent, 'step'>[] {
  const judge = fanOut?.select?.judge;
  return [
    ...(body.kind === 'agent' ? [{ name: body.agent, position: body.position ?? position }] : []),
    ...(judge ? [{ name: judge.agent, position: judge.position ?? position }] : []),
  ];
}
