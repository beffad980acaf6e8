/** Refuses words that stand in for the field's own terms in everything that a person reads. */
import { execFileSync } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';

const root = join(import.meta.dirname, '..');

/** A pattern, and the words to use instead. */
const refused: readonly (readonly [RegExp, string])[] = [
  [/\bmend(s|ed|ing)?\b/i, 'fix'],
  [/\bwhoever\b/i, 'the worker, the caller, the process'],
  [/\bnobody believes\b/i, 'name the limit'],
  [/\bso many\b/i, 'number of'],
  [/\bunless it is said\b/i, 'Defaults to'],
  [/\b(is|are|was|were|be) gone on\b|\bgone on with\b/i, 'resume'],
  [/\b(go|goes|going|gone) about\b/i, 'do, handle'],
  [/\b(come|comes|came|coming) to (its|their|an) end\b/i, 'end'],
  [/\botherwise than\b/i, 'different from'],
  [/\btold of\b/i, 'reported, notified'],
  [/\bas it stands\b/i, 'status, as is'],
  [/\b(has|have|had) the last word\b/i, 'decides, runs last'],
  [/\bbefall(s|en)?\b|\bbefell\b/i, 'happen'],
  [/\bin vain\b/i, 'without effect'],
  [/\b(let|lets|letting) go( of)?\b/i, 'release, abandon'],
  [/\bof its own accord\b/i, 'by itself'],
  [/\bto be done about\b/i, 'fix'],
  [/\b(he|his|him|himself)\b/i, 'it, its'],
  [/\bat work on\b/i, 'working on, running'],
  [/\banother one than\b/i, 'different from'],
  [/\b(is|are) nothing that\b/i, 'name what is wrong'],
  [/\bwhat came of\b/i, 'the result of'],
  [/\beverybody\b/i, 'every process, every worker'],
];

/** Lines that may keep a refused word, as `<file>: <part of the line>`, each with the reason. At most ten. */
const allowed: Readonly<Record<string, string>> = {};

/** `somebody` and `nobody` in the whole repository, recordings of earlier versions aside. */
const impersonalLimit = 20;

const tracked = execFileSync('git', ['ls-files', '-z'], { cwd: root, encoding: 'utf8' })
  .split('\0')
  .filter(
    file => file !== '' && !/^test\/(cases-of|history)\//.test(file) && !/^package-lock\.json$/.test(file),
  );
const isChecked = (file: string) =>
  /^(README|CONTRIBUTING|ARCHITECTURE)\.md$/.test(file) || /^(docs|src)\//.test(file);
const isThisFile = (file: string) => file === 'scripts/words.ts';

const problems: string[] = [];
const used = new Set<string>();
let impersonal = 0;
for (const file of tracked) {
  if (isThisFile(file)) continue;
  const lines = readFileSync(join(root, file), 'utf8').split('\n');
  for (const [index, line] of lines.entries()) {
    impersonal += line.match(/\b(somebody|nobody)\b/gi)?.length ?? 0;
    if (!isChecked(file)) continue;
    for (const [pattern, instead] of refused) {
      const found = line.match(pattern)?.[0];
      if (found === undefined) continue;
      const reason = Object.keys(allowed).find(key => {
        const [path = '', part = ''] = key.split(': ', 2);
        return path === file && line.includes(part);
      });
      if (reason) used.add(reason);
      else problems.push(`${file}:${index + 1}: "${found}": write ${instead}`);
    }
  }
}
if (impersonal > impersonalLimit) {
  problems.push(
    `"somebody" and "nobody" occur ${impersonal} times in the repository, at most ${impersonalLimit}`,
  );
}
if (Object.keys(allowed).length > 10) problems.push('more than ten lines are allowed to keep a refused word');
for (const key of Object.keys(allowed))
  if (!used.has(key)) problems.push(`${key}: allowed, and not there any more`);

for (const problem of problems) console.error(problem);
console.log(problems.length === 0 ? 'no refused words' : `${problems.length} refused words`);
if (problems.length > 0) process.exitCode = 1;
