// Makes one page of what all reviewers found; they come in the order of the matrix, however long each took.
import { appendFileSync, mkdirSync, writeFileSync } from 'node:fs';

const results = JSON.parse(process.env.RESULTS);
const rows = results.map(({ status, output, error }) =>
  status === 'completed'
    ? `${output.file}: functions ${output.functions}, open ${output.open}`
    : `${status}: ${error?.message}`,
);
mkdirSync('out', { recursive: true });
writeFileSync('out/summary.md', `${rows.map(row => `- ${row}`).join('\n')}\n`);
const open = results.reduce((sum, { output }) => sum + (output?.open ?? 0), 0);
appendFileSync(process.env.REPRISE_OUTPUT, JSON.stringify({ open }));
