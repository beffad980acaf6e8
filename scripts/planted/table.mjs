const head = ['bug', 'found as', 'by', 'schedules', 'seconds', 'switches', 'where'];

const cellsOf = ({ name, failure, isDrift, schedules, seconds, search }) => [
  name,
  failure ? `${failure.what}${isDrift ? ' (in memory only)' : ''}` : '**not found**',
  failure ? failure.attempt.by : '',
  String(schedules),
  seconds.toFixed(1),
  failure ? String(failure.switches ?? '') : '',
  search,
];

/** Of what was found, for people and for bench/RESULTS.md. */
export function tableOf(rows) {
  const lines = [head, head.map(() => '---'), ...rows.map(cellsOf)];
  return lines.map(cells => `| ${cells.join(' | ')} |`).join('\n');
}

tableOf.line = row =>
  cellsOf(row)
    .filter(cell => cell !== '')
    .join(', ');
