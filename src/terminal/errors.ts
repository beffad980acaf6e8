import { type ErrorData, type Position, RepriseError, toErrorData } from '../core/index.ts';
import { furtherLines, safeLine, safeText } from '../view/index.ts';
import { DefinitionError, type Problem } from '../workflow/index.ts';
import { count, type Paint, painter } from './text.ts';
import { errorLine } from './words.ts';

/**
 * Formats an error as `error[CODE]: message`, its position and its hint. An error that is not a RepriseError is reported as
 * a bug, with its stack and causes.
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

const maxCauses = 5;

/** Stacks of an error and of its causes. */
function stacks(error: unknown): readonly string[] {
  const found: string[] = [];
  let at = error;
  while (at instanceof Error && found.length < maxCauses) {
    const stack = safeText(at.stack ?? `${at.name}: ${at.message}`);
    found.push(`${found.length === 0 ? '' : 'caused by '}${stack}`);
    at = at.cause;
  }
  return found;
}

export interface Cause {
  readonly error: ErrorData;
  /** Step that failed. Absent if the run as a whole failed, for example because it exceeded its budget. */
  readonly step?: string | undefined;
  /** File with the complete output of the step. */
  readonly logFile?: string | undefined;
}

const shownLines = 10;

/** Lines about why a run failed: step, message with the last lines of output, stack frame, log file and hint. */
export function causeLines({ error, step, logFile }: Cause, paint: Paint): readonly string[] {
  const where = step === undefined ? '' : `${safeLine(step)}: `;
  const further = furtherLines(error.message).slice(-shownLines);
  const frame = userFrame(error.stack);
  const hint = hintLines(error.hint ?? '');
  const named = logFile !== undefined && !hint.some(line => line.includes(logFile));
  return [
    `${paint('red', `${where}${errorLine(error)}`)} ${paint('dim', `[${safeLine(error.code)}]`)}`,
    ...further.map(line => `  ${paint('dim', '|')} ${line}`),
    ...(frame ? [`  ${paint('dim', frame)}`] : []),
    ...(named ? [`  log: ${safeLine(logFile)}`] : []),
    ...hint,
  ];
}

/** Formats a hint. Each of its lines stays on its own line, so that commands can be copied. */
export const hintLines = (hint: string): readonly string[] =>
  safeText(hint)
    .split('\n')
    .map(line => line.trim())
    .filter(line => line !== '')
    .map((line, index) => `${index === 0 ? '  hint: ' : '        '}${line}`);

/** First stack frame outside Node.js and installed packages. */
function userFrame(stack: string | undefined): string | undefined {
  const frames = safeText(stack ?? '')
    .split('\n')
    .map(line => line.trim());
  return frames.find(line => line.startsWith('at ') && !/node:|node_modules|<anonymous>/.test(line));
}
