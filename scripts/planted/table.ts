import type { Explored } from './explore-copy.ts';

export interface Row extends Explored {
  readonly name: string;
}

const head = ['bug', 'found as', 'by', 'schedules', 'seconds', 'switches', 'where'];

const cellsOf = ({ name, failure, isDrift, schedules, seconds, search }: Row): readonly string[] => [
  name,
  failure ? `${failure.what}${isDrift ? ' (in memory only)' : ''}` : '**not found**',
  failure ? failure.attempt.by : '',
  String(schedules),
  seconds.toFixed(1),
  failure ? String(failure.switches ?? '') : '',
  search,
];

/** Returns the results as a Markdown table. */
export function tableOf(rows: readonly Row[]): string {
  const lines = [head, head.map(() => '---'), ...rows.map(cellsOf)];
  return lines.map(cells => `| ${cells.join(' | ')} |`).join('\n');
}

/** Returns the result of one bug as a line. */
export const lineOf = (row: Row): string =>
  cellsOf(row)
    .filter(cell => cell !== '')
    .join(', ');
