import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import type { Git } from '../../git/git.ts';
import { count } from '../../terminal/text.ts';
import { patternOf } from '../manifest/fields.ts';
import type { CaseStep, Expectation, ExpectedFile } from '../manifest/manifest.ts';
import type { CaseFailure } from '../result.ts';
import { compareSnapshot } from '../snapshot/diff.ts';
import { outputLines } from '../snapshot/normalise.ts';

export interface ExpectationCheck {
  readonly step: Pick<CaseStep, 'name' | 'position'>;
  readonly expect: Expectation;
  /** `null` if it was killed before it had one. */
  readonly exitCode: number | null;
  readonly output: string;
  readonly repo: {
    /** Runs in the root of the test repository. */
    readonly git: Git;
    /** The branch that `main` is about; `main` unless it is given. */
    readonly main?: string | undefined;
  };
}

type Finding = Pick<CaseFailure, 'message' | 'diff'>;

/** What of that which must hold after a step does not, all of it. */
export async function checkExpectations(check: ExpectationCheck): Promise<readonly CaseFailure[]> {
  const { step, expect, output, repo } = check;
  const text = outputLines(output).join('\n');
  const files = await Promise.all(
    Object.entries(expect.files).map(([path, expected]) => checkFile(repo.git.cwd, path, expected)),
  );
  const findings = [
    ...checkExit(check, text),
    ...files.flat(),
    ...(expect.main ? await checkMain(expect.main, repo) : []),
    ...expect.output.filter(written => !isIn(text, written)).map(written => notSaid(written, text)),
    ...expect.notOutput.filter(written => isIn(text, written)).map(written => said(written, text)),
  ];
  return findings.map(finding => ({
    kind: 'expectation',
    step: step.name,
    file: step.position.file,
    line: step.position.line,
    ...finding,
  }));
}

function checkExit({ expect, exitCode }: ExpectationCheck, text: string): readonly Finding[] {
  if (expect.exit === undefined || expect.exit === exitCode) return [];
  const got = exitCode === null ? 'it was killed' : `got ${exitCode}`;
  return [{ message: `expected exit code ${expect.exit}, ${got}${endOf(text)}` }];
}

async function checkFile(root: string, path: string, expected: ExpectedFile): Promise<readonly Finding[]> {
  const content = await contentOf(join(root, path));
  switch (expected.kind) {
    case 'absent':
      return content === undefined ? [] : [{ message: `expected no file ${path}, but there is one` }];
    case 'contains':
      if (content?.includes(expected.text)) return [];
      return [{ message: `expected ${quoted(expected.text)} in ${path}${stateOf(content)}` }];
    case 'exact': {
      if (content === undefined) return [{ message: `expected a file ${path}, but there is none` }];
      if (content === expected.content) return [];
      const comparison = compareSnapshot({ expected: expected.content, actual: content });
      // Carriage returns are the one thing that the comparison of snapshots does not see.
      if (comparison.equal) return [{ message: `${path} has other line ends than expected` }];
      return [{ message: `${path} is not what was expected`, diff: comparison.diff }];
    }
  }
}

/** `undefined` if there is nothing; a folder is not taken for a file. */
async function contentOf(file: string): Promise<string | undefined> {
  try {
    return await readFile(file, 'utf8');
  } catch (error) {
    const code = error instanceof Error && 'code' in error ? error.code : undefined;
    if (code === 'ENOENT' || code === 'ENOTDIR' || code === 'EISDIR') return undefined;
    throw error;
  }
}

const stateOf = (content: string | undefined): string => {
  if (content === undefined) return ', but there is no such file';
  return content === '' ? ', but it is empty' : `\nit has:${quotedLines(content.trimEnd().split('\n'))}`;
};

async function checkMain(
  expected: readonly string[],
  { git, main = 'main' }: ExpectationCheck['repo'],
): Promise<readonly Finding[]> {
  const log = await git.run(['log', '--format=%s', '--reverse', `refs/heads/${main}`, '--']);
  if (log.code !== 0) return [{ message: `expected commits on ${main}, but there is no such branch` }];
  const actual = log.stdout.split('\n').slice(0, -1);
  const comparison = compareSnapshot({ expected: asText(expected), actual: asText(actual) });
  if (comparison.equal) return [];
  const numbers = `expected ${count(expected.length, 'commit')}, got ${actual.length}`;
  return [{ message: `the commits on ${main} are not those expected: ${numbers}`, diff: comparison.diff }];
}

const asText = (subjects: readonly string[]): string => subjects.map(subject => `${subject}\n`).join('');

function isIn(text: string, written: string): boolean {
  const pattern = patternOf(written);
  return typeof pattern === 'string' ? text.includes(pattern) : pattern.test(text);
}

const notSaid = (written: string, text: string): Finding => ({
  message: `expected ${shown(written)} in the output${text === '' ? ', but there was none' : endOf(text)}`,
});

function said(written: string, text: string): Finding {
  const line = text.split('\n').find(each => isIn(each, written));
  const where = line === undefined ? endOf(text) : `\ngot:${quotedLines([line])}`;
  return { message: `expected no ${shown(written)} in the output${where}` };
}

/** A regular expression as it was written, any other text in quotes. */
const shown = (written: string): string =>
  typeof patternOf(written) === 'string' ? quoted(written) : written;

const quoted = (text: string): string => JSON.stringify(text);

const shownLines = 5;

/** The last lines, for whoever wonders what it said instead. */
function endOf(text: string): string {
  if (text === '') return '';
  const lines = text.split('\n');
  const cut = lines.length > shownLines ? '\n| ...' : '';
  return `\nthe output ends with:${cut}${quotedLines(lines.slice(-shownLines))}`;
}

function quotedLines(all: readonly string[]): string {
  const more = all.length - shownLines;
  const kept = all.slice(0, shownLines).map(line => `\n| ${line}`.trimEnd());
  return `${kept.join('')}${more > 0 ? `\n| ... and ${count(more, 'more line')}` : ''}`;
}
