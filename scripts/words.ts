/**
 * Refuses words that stand in for the field's own terms. Checks the comments and strings of `src/`, and all text of
 * `docs/`, README.md, CONTRIBUTING.md and ARCHITECTURE.md. Limits `somebody` and `nobody` in the whole repository.
 */
import { execFileSync } from 'node:child_process';
import { existsSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import ts from 'typescript';

const root = join(import.meta.dirname, '..');

/** Patterns, each with the words to use instead. A space also matches a line break. */
const refused: readonly (readonly [RegExp, string])[] = [
  [/\bmend(s|ed|ing)?\b/gi, 'fix'],
  [/\b(who|what|which)soever\b|\bwhoever\b/gi, 'the worker, the caller, the process'],
  [/\bnobody believes\b/gi, 'the limit that applies'],
  [/\bso many\b/gi, 'number of'],
  [/\bunless (it is said|said otherwise)\b/gi, 'Defaults to, unless set'],
  [/\b(is|are|was|were|be|been) gone on\b|\b(go|goes|going|gone|went) on with\b/gi, 'resume, continue'],
  [/\b(go|goes|going|gone|went) about\b/gi, 'do, handle'],
  [/\b(come|comes|came|coming) to (its|their|an) end\b/gi, 'end'],
  [/\b(otherwise|another one|other) than it (is|was)\b|\botherwise than\b/gi, 'changed, different from'],
  [/\banother one than\b/gi, 'different from'],
  [/\btold of\b/gi, 'reported, notified'],
  [/\bas it stands\b/gi, 'status, as is'],
  [/\b(has|have|had|having) the last word\b/gi, 'decides, runs last'],
  [/\bbefall(s|en)?\b|\bbefell\b/gi, 'happen to'],
  [/\bin vain\b/gi, 'without effect'],
  [/\b(let|lets|letting) go( of)?\b/gi, 'release, abandon'],
  [/\bof (its|their) own accord\b/gi, 'by itself'],
  [/\bto be done about\b/gi, 'fix'],
  [/\b(he|his|him|himself|she|her|hers|herself)\b/gi, 'it, its'],
  [/\bat work on\b/gi, 'working on, running'],
  [/\b(is|are) nothing that\b/gi, 'the problem'],
  [/\bwhat (came|comes|became|becomes) of\b/gi, 'the result of'],
  [/\b(every|any)body\b/gi, 'every process, any worker'],
  [/\bthat which\b/gi, 'the noun'],
];

/** Lines that may keep a refused word, as `<file>: <part of the line>`, each with the reason. At most ten. */
const allowed: Readonly<Record<string, string>> = {
  "src/workflow/expression/evaluate.test.ts: 'he'": 'an operand of an expression, not a pronoun',
};

/** Maximum number of `somebody` and `nobody` in the repository, recordings of earlier versions aside. */
const impersonalLimit = 20;
const impersonal = /\b(some|no)body\b/gi;

const isFrozen = (file: string) => /^test\/(cases-of|history)\//.test(file);
const isChecked = (file: string) =>
  /^(README|CONTRIBUTING|ARCHITECTURE)\.md$/.test(file) || /^(docs|src)\//.test(file);

/** Text that a person reads, and its position in the file. */
interface Prose {
  readonly text: string;
  readonly start: number;
}

/** Returns the comments, strings and templates of a source file. */
function proseOf(file: string, text: string): readonly Prose[] {
  if (!/\.[cm]?tsx?$|\.[cm]?js$/.test(file)) return [{ text, start: 0 }];
  const kind = file.endsWith('x') ? ts.ScriptKind.TSX : ts.ScriptKind.TS;
  const source = ts.createSourceFile(file, text, ts.ScriptTarget.Latest, true, kind);
  const found: Prose[] = [];
  const add = (start: number, end: number) => found.push({ text: text.slice(start, end), start });
  const visit = (node: ts.Node): void => {
    if (ts.isJSDoc(node)) return;
    const children = node.getChildren(source);
    for (const child of children) visit(child);
    if (children.length > 0) return;
    const start = node.getStart(source, false);
    // The trivia before a token contains its comments.
    if (text.slice(node.getFullStart(), start).includes('/')) add(node.getFullStart(), start);
    if (isText(node)) add(start, node.end);
  };
  visit(source);
  return found;
}

const isText = (node: ts.Node): boolean =>
  ts.isStringLiteralLike(node) || ts.isTemplateLiteralToken(node) || ts.isJsxText(node);

/** Replaces line breaks, and the asterisks and quotes around them, with spaces, so that phrases match across lines. */
const joined = (text: string): string =>
  text.replace(/[ \t]*\n[ \t]*(\*(?!\/)|\/\/|>)?[ \t]*/g, gap => ' '.padEnd(gap.length)).replace(/\t/g, ' ');

const problems: string[] = [];
const used = new Set<string>();

function check(file: string, text: string): void {
  const lines = text.split('\n');
  for (const prose of proseOf(file, text)) {
    const flat = joined(prose.text);
    for (const [pattern, instead] of refused) {
      for (const match of flat.matchAll(spaced(pattern))) {
        const at = text.slice(0, prose.start + match.index).split('\n').length;
        const excuse = excuseFor(file, lines[at - 1] ?? '');
        if (excuse) used.add(excuse);
        else problems.push(`${file}:${at}: "${match[0].replace(/ +/g, ' ')}": write ${instead}`);
      }
    }
  }
}

/** Lets every space of a pattern match several, because joined lines keep their length. */
const spaced = ({ source, flags }: RegExp): RegExp => new RegExp(source.replaceAll(' ', ' +'), flags);

function excuseFor(file: string, line: string): string | undefined {
  return Object.keys(allowed).find(key => {
    const [path = '', part = ''] = key.split(': ', 2);
    return path === file && line.includes(part);
  });
}

const files = execFileSync('git', ['ls-files', '-z', '--cached', '--others', '--exclude-standard'], {
  cwd: root,
  encoding: 'utf8',
})
  .split('\0')
  .filter(file => file !== '' && !isFrozen(file) && file !== 'scripts/words.ts')
  // A file that is listed may be deleted in the work tree, or be a folder behind a link.
  .filter(file => existsSync(join(root, file)));

const impersonalLines: string[] = [];
for (const file of new Set(files)) {
  const text = readText(join(root, file));
  if (text === undefined) continue;
  for (const [index, line] of text.split('\n').entries())
    for (const [word] of line.matchAll(impersonal)) impersonalLines.push(`${file}:${index + 1}: "${word}"`);
  if (isChecked(file)) check(file, text);
}

/** Returns nothing for a folder, such as a submodule or a link to one. */
function readText(path: string): string | undefined {
  try {
    return readFileSync(path, 'utf8');
  } catch (error) {
    if (error instanceof Error && 'code' in error && error.code === 'EISDIR') return undefined;
    throw error;
  }
}

if (impersonalLines.length > impersonalLimit) {
  problems.push(
    ...impersonalLines,
    `"somebody" and "nobody" occur ${impersonalLines.length} times in the repository, at most ${impersonalLimit}`,
  );
}
if (Object.keys(allowed).length > 10) problems.push('more than ten lines are allowed to keep a refused word');
for (const key of Object.keys(allowed))
  if (!used.has(key)) problems.push(`${key}: allowed, but no longer present`);

for (const problem of problems) console.error(problem);
console.log(
  problems.length === 0
    ? `no refused words; "somebody" and "nobody" occur ${impersonalLines.length} times, at most ${impersonalLimit}`
    : `${problems.length} problems`,
);
if (problems.length > 0) process.exitCode = 1;
