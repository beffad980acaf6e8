// Combines the findings of all reviewers into one page. Results come in matrix order, however long each reviewer took.
import { appendFileSync, mkdirSync, writeFileSync } from 'node:fs';

const { RESULTS = '[]', REPRISE_OUTPUT = '' } = process.env;
/** @type {import('reprise').WorkerResult<{ file: string, functions: number, open: number }>[]} */
const results = JSON.parse(RESULTS);
const rows = results.map(({ status, output, error }) =>
  output
    ? `- ${output.file}: functions ${output.functions}, open ${output.open}\n`
    : `- ${status}: ${error?.message}\n`,
);
mkdirSync('out', { recursive: true });
writeFileSync('out/summary.md', rows.join(''));
const open = results.reduce((sum, { output }) => sum + (output?.open ?? 0), 0);
appendFileSync(REPRISE_OUTPUT, JSON.stringify({ open }));
