import { safeOutput } from '../../view/safe-text.ts';

/**
 * What somebody reads who looks at the output of a step: without escape sequences and blanks at the ends of lines; of a
 * line that was written over and over, what it was at last; no empty lines at the end.
 */
export function outputLines(output: string): readonly string[] {
  const lines = output.split('\n').map(safeOutput);
  return lines.slice(0, lines.findLastIndex(line => line !== '') + 1);
}
