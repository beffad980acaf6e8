import type { ErrorData } from '../core/errors.ts';
import { errorLine } from '../terminal/words.ts';
import { furtherLines, safeLine, safeText } from '../view/safe-text.ts';
import type { Paint } from './paint.ts';

export interface Cause {
  readonly error: ErrorData;
  /** Absent if the run as a whole failed, as over its budget. */
  readonly step?: string | undefined;
  /** Where the whole output of the step is. */
  readonly logFile?: string | undefined;
}

const shownLines = 10;

/** Why a run failed: the step, the message with the last lines of output, where in the code, the log and the hint. */
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

/** One line for each of the hint: commands in it are there to be copied. */
export const hintLines = (hint: string): readonly string[] =>
  safeText(hint)
    .split('\n')
    .map(line => line.trim())
    .filter(line => line !== '')
    .map((line, index) => `${index === 0 ? '  hint: ' : '        '}${line}`);

/** The first line of the stack that is neither Node's nor a package's. */
function userFrame(stack: string | undefined): string | undefined {
  const frames = safeText(stack ?? '')
    .split('\n')
    .map(line => line.trim());
  return frames.find(line => line.startsWith('at ') && !/node:|node_modules|<anonymous>/.test(line));
}
