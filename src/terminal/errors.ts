import { type Position, RepriseError, toErrorData } from '../core/errors.ts';
import { count } from '../report/count.ts';
import { type Paint, painter } from '../report/paint.ts';
import { safeLine, safeText } from '../view/safe-text.ts';
import { DefinitionError, type Problem } from '../workflow/problems.ts';

/**
 * An error for a person: `error[CODE]: message`, where it is, and `hint:`. What Reprise did not raise on purpose is a bug,
 * says so, and comes with its stack and causes.
 */
export function formatError(error: unknown, { color }: { readonly color: boolean }): string {
  const paint = painter(color);
  if (error instanceof DefinitionError && error.problems.length > 0) return definitionText(error, paint);
  if (error instanceof RepriseError && error.code !== 'INTERNAL')
    return `${problemText(error.code, error, paint)}\n`;
  return bugText(error, paint);
}

function definitionText({ code, problems }: DefinitionError, paint: Paint): string {
  const blocks = problems.map(problem => problemText(code, problem, paint));
  const total = problems.length > 1 ? [count(problems.length, 'problem')] : [];
  return `${[...blocks, ...total].join('\n\n')}\n`;
}

function problemText(code: string, { message, position, excerpt, hint }: Problem, paint: Paint): string {
  const where = position && positionText(position);
  const lines = [
    headline(code, message, paint),
    ...(where !== undefined && !message.includes(where) ? [`  ${paint('dim', 'at')} ${where}`] : []),
    ...(excerpt ? [paint('dim', safeText(excerpt))] : []),
    ...(hint ? [hintLine(hint, paint)] : []),
  ];
  return lines.join('\n');
}

const headline = (code: string, message: string, paint: Paint): string =>
  `${paint('red', `error[${safeLine(code)}]`)}: ${paint('bold', safeText(message).trimEnd())}`;

const hintLine = (hint: string, paint: Paint): string => `  ${paint('cyan', 'hint:')} ${safeText(hint)}`;

const positionText = ({ file, line, column }: Position): string => `${safeLine(file)}:${line}:${column}`;

function bugText(error: unknown, paint: Paint): string {
  const { message, hint } = toErrorData(error);
  const lines = [
    headline('INTERNAL', message, paint),
    ...(hint ? [hintLine(hint, paint)] : []),
    '  this is a bug in Reprise: please report it with the lines below',
    ...stacks(error).map(stack => paint('dim', stack)),
  ];
  return `${lines.join('\n')}\n`;
}

const deepestCause = 5;

/** The stack of an error and of each error that it was raised for. */
function stacks(error: unknown): readonly string[] {
  const found: string[] = [];
  let at = error;
  while (at instanceof Error && found.length < deepestCause) {
    const stack = safeText(at.stack ?? `${at.name}: ${at.message}`);
    found.push(`${found.length === 0 ? '' : 'caused by '}${stack}`);
    at = at.cause;
  }
  return found;
}
