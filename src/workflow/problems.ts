import { type Position, RepriseError } from '../core/index.ts';
import type { StepModel, StepPermissions, WorkflowModel } from './model.ts';

/** One error in a definition. */
export interface Problem {
  readonly message: string;
  readonly hint?: string | undefined;
  readonly position?: Position | undefined;
  /** Source line with a caret below the position. */
  readonly excerpt?: string | undefined;
}

/** Reports all errors of a definition together, in the order of the file. */
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

/** Formats a problem as `file:line:column: message`, followed by the excerpt and the hint. */
export function formatProblem({ message, hint, position, excerpt }: Problem): string {
  const where = position ? `${position.file}:${position.line}:${position.column}: ` : '';
  return [`${where}${message}`, excerpt, hint && `  hint: ${hint}`].filter(Boolean).join('\n');
}

/** Default name of an artifact: its file name without the extension. */
export const artifactName = (path: string): string =>
  (/[^/]*$/.exec(path.replace(/\/+$/, ''))?.[0] ?? '').replace(/(?<=.)\.[^.]*$/, '');

/** Explains why a path is not a valid artifact path, as the rest of a sentence. `undefined` if it is valid. */
export function objectToArtifactPath(path: string): string | undefined {
  if (path.includes('\0')) return 'must not contain a NUL character';
  if (path.startsWith('/') || path.startsWith('~')) return 'must be relative to the workspace';
  const parts = path.split('/');
  if (parts.includes('..')) return 'must stay inside the workspace';
  if (parts.every(part => part === '' || part === '.')) return 'must name a file';
  return undefined;
}

/** A reference to an agent in a workflow. */
export interface NamedAgent {
  readonly name: string;
  /** Path of the step that names the agent. */
  readonly step: string;
  /** Position of the reference in its file. */
  readonly position?: Position | undefined;
  /** Permissions that the step sets for the agent. */
  readonly permissions?: StepPermissions | undefined;
}

/** Returns every agent that a workflow names, including judges and child workflows, in the order of the steps. */
export function agentNames(model: WorkflowModel): readonly NamedAgent[] {
  const named: NamedAgent[] = [];
  const seen = new Set<WorkflowModel>();
  const visit = ({ steps }: WorkflowModel, prefix: string): void => {
    for (const step of steps) {
      const path = `${prefix}${step.id}`;
      named.push(...namedBy(step).map(agent => ({ ...agent, step: path })));
      if (step.body.kind !== 'uses' || seen.has(step.body.workflow)) continue;
      // A child workflow that is used twice names the same agents at the same positions.
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
    ...(body.kind === 'agent'
      ? [
          {
            name: body.agent,
            position: body.position ?? position,
            ...(body.permissions ? { permissions: body.permissions } : {}),
          },
        ]
      : []),
    ...(judge ? [{ name: judge.agent, position: judge.position ?? position }] : []),
  ];
}
