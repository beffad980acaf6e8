// Plays the part of a coding agent: reads its prompt from standard input, works in the current folder, reports its
// progress, and ends with a result.
import { mkdirSync, readFileSync, writeFileSync } from 'node:fs';

/** @param {object} event */
const say = event => console.log(JSON.stringify(event));

const prompt = readFileSync(0, 'utf8');
const file = /^Review (\S+)\.$/m.exec(prompt)?.[1] ?? '';
say({ type: 'text', text: `I read ${file}.` });
const text = readFileSync(file, 'utf8');
const names = [...text.matchAll(/^export const (\w+)/gm)].map(([, name]) => name);
const open = text.split('\n').filter(line => line.includes('later')).length;

mkdirSync('out', { recursive: true });
writeFileSync('out/review.md', `## ${file}\n\n${names.map(name => `- \`${name}\` reads well`).join('\n')}\n`);
say({ type: 'usage', inputTokens: text.length, outputTokens: 20 * names.length });
say({ type: 'result', text: `Reviewed ${file}.`, output: { file, functions: names.length, open } });
