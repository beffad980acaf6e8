import { join } from 'node:path';
import { FileRefusedError, fileLimits, readBoundedText } from '../../effects/index.ts';
import type { Git } from '../../git/index.ts';
import { count } from '../../terminal/index.ts';
import { patternOf } from '../manifest/fields.ts';
import type { CaseStep, Expectation, ExpectedFile } from '../manifest/manifest.ts';
import type { CaseFailure } from '../result.ts';
import { compareSnapshot } from '../snapshot/diff.ts';
import { outputLines } from '../snapshot/normalise.ts';

export interface ExpectationCheck {
  readonly step: Pick<CaseStep, 'name' | 'position'>;
  readonly expect: Expectation;
  /** `null` if the command was killed. */
  readonly exitCode: number | null;
  readonly output: string;
  readonly repo: {
    /** Runs in the root of the test repository. */
    readonly git: Git;
    /** Branch that `expect.main` is compared with. Defaults to `main`. */
    readonly main?: string | undefined;
  };
}

type UnmetExpectation = Pick<CaseFailure, 'message' | 'diff'>;

/** Returns all expectations that do not hold after a command. */
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
    ...expect.output.filter(written => !isIn(text, written)).map(written => missing(written, text)),
    ...expect.notOutput.filter(written => isIn(text, written)).map(written => unexpected(written, text)),
  ];
  return findings.map(finding => ({
    kind: 'expectation',
    step: step.name,
    file: step.position.file,
    line: step.position.line,
    ...finding,
  }));
}

function checkExit({ expect, exitCode }: ExpectationCheck, text: string): readonly UnmetExpectation[] {
  if (expect.exit === undefined || expect.exit === exitCode) return [];
  const got = exitCode === null ? 'but it was killed' : `got ${exitCode}`;
  return [{ message: `expected exit code ${expect.exit}, ${got}${endOf(text)}` }];
}

async function checkFile(
  root: string,
  path: string,
  expected: ExpectedFile,
): Promise<readonly UnmetExpectation[]> {
  const content = contentOf(join(root, path));
  switch (expected.kind) {
    case 'absent':
      return content === undefined ? [] : [{ message: `expected ${path} not to exist, but it does` }];
    case 'contains':
      if (content?.includes(expected.text)) return [];
      return [{ message: `expected ${quoted(expected.text)} in ${path}${stateOf(content)}` }];
    case 'exact': {
      if (content === undefined) return [{ message: `expected the file ${path}, but it does not exist` }];
      if (content === expected.content) return [];
      const comparison = compareSnapshot({ expected: expected.content, actual: content });
      // The comparison of snapshots ignores carriage returns.
      if (comparison.equal)
        return [{ message: `${path} differs from the expected content in its line endings` }];
      return [{ message: `${path} differs from the expected content`, diff: comparison.diff }];
    }
  }
}

/** Returns `undefined` if there is no regular file. */
function contentOf(file: string): string | undefined {
  try {
    return readBoundedText(file, { maxBytes: fileLimits.recording });
  } catch (error) {
    if (error instanceof FileRefusedError) return undefined;
    const code = error instanceof Error && 'code' in error ? error.code : undefined;
    if (code === 'ENOENT' || code === 'ENOTDIR') return undefined;
    throw error;
  }
}

const stateOf = (content: string | undefined): string => {
  if (content === undefined) return ', but the file does not exist';
  return content === ''
    ? ', but the file is empty'
    : `\nthe file contains:${quotedLines(content.trimEnd().split('\n'))}`;
};

async function checkMain(
  expected: readonly string[],
  { git, main = 'main' }: ExpectationCheck['repo'],
): Promise<readonly UnmetExpectation[]> {
  const log = await git.run(['log', '--format=%s', '--reverse', `refs/heads/${main}`, '--']);
  if (log.code !== 0) return [{ message: `expected commits on ${main}, but the branch does not exist` }];
  const actual = log.stdout.split('\n').slice(0, -1);
  const comparison = compareSnapshot({ expected: asText(expected), actual: asText(actual) });
  if (comparison.equal) return [];
  const numbers = `expected ${count(expected.length, 'commit')}, got ${actual.length}`;
  return [{ message: `the commits on ${main} differ: ${numbers}`, diff: comparison.diff }];
}

const asText = (subjects: readonly string[]): string => subjects.map(subject => `${subject}\n`).join('');

const isIn = (text: string, written: string): boolean => matcherOf(written)(text);

function matcherOf(written: string): (text: string) => boolean {
  const pattern = patternOf(written);
  return text => (typeof pattern === 'string' ? text.includes(pattern) : pattern.test(text));
}

const missing = (written: string, text: string): UnmetExpectation => ({
  message: `expected ${shown(written)} in the output${text === '' ? ', but it is empty' : endOf(text)}`,
});

function unexpected(written: string, text: string): UnmetExpectation {
  const line = text.split('\n').find(matcherOf(written));
  const where = line === undefined ? endOf(text) : `\ngot:${quotedLines([line])}`;
  return { message: `expected no ${shown(written)} in the output${where}` };
}

/** Returns a regular expression as is, and any other text in quotes. */
const shown = (written: string): string =>
  typeof patternOf(written) === 'string' ? quoted(written) : written;

const quoted = (text: string): string => JSON.stringify(text);

const shownLines = 5;

/** Returns the last lines of the output, to show what the command printed instead. */
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
