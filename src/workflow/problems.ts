import { type Position, RepriseError } from '../core/errors.ts';

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
