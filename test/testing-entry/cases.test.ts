import { existsSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterEach, describe, expect, it, test } from 'vitest';
import { testContext } from '../../src/cli/other-commands.ts';
import { runProgram } from '../../src/cli/program.ts';
import { type CasesOptions, listCases } from '../../src/testing/cases.ts';
import { CaseFailedError, cases } from '../../src/testing.ts';
import { createProject, type Project, recordedProject } from './recorded-project.ts';

describe('cases of this repository', () => {
  cases({ names: ['endings/*'], test });
});

let project: Project | undefined;
afterEach(() => {
  project?.remove();
  project = undefined;
});

const listIn = ({ root }: Project, options: CasesOptions = {}, env: Readonly<Record<string, string>> = {}) =>
  listCases(options, testContext({ env: { PATH: process.env['PATH'], ...env }, cwd: root }, runProgram));

const caught = async (work: Promise<void> | undefined): Promise<CaseFailedError> => {
  const error = await work?.then(
    () => undefined,
    (thrown: unknown) => thrown,
  );
  if (error instanceof CaseFailedError) return error;
  throw error ?? new Error('it did not fail');
};

/** Output of `reprise test` for a failure, without the indentation below its title. */
const printed = (stdout: string): string =>
  stdout
    .split('\n')
    .map(line => line.replace(/^ {2}/, ''))
    .join('\n');

it('defines one test per case, which passes if the case does', async () => {
  project = await recordedProject();
  const defined: [string, () => Promise<void>][] = [];
  const list = listIn(project, { test: (title, run) => defined.push([title, run]) });
  expect(list.map(({ title }) => title)).toEqual(['quote', 'release']);
  expect(defined.map(([title]) => title)).toEqual(['quote', 'release']);
  for (const [, run] of defined) await run();
});

it('fails with the message of `reprise test`, and follows the same rules for snapshots', async () => {
  project = await recordedProject();
  const file = join(project.root, 'cases/release/release.snap');
  const snapshot = readFileSync(file, 'utf8');
  project.write({ 'cases/release/release.snap': snapshot.replace('Begin', 'Began') });
  const find = (env: Readonly<Record<string, string>>) =>
    listIn(project as Project, { names: ['release'] }, env)[0]?.run();

  const inCi = await caught(find({ CI: 'true' }));
  expect(existsSync(`${file}.new`)).toBe(false);
  const { stdout } = await project.reprise(['test', 'release'], { CI: 'true' });
  expect(printed(stdout)).toContain(`\n${inCi.message}\n`);
  expect(inCi.message).toContain('reprise test release --accept');
  expect(inCi.expected).toContain('  Began');
  expect(inCi.actual).toContain('  Begin');
  expect(inCi.stack).toMatch(/ {4}at \/.*cases\/release\/release\.snap:\d+:1$/);
  // Enumerable fields would be printed in addition to the message and repeat it.
  expect(Object.keys(inCi)).toEqual(['name']);

  await caught(find({}));
  expect(readFileSync(`${file}.new`, 'utf8')).toBe(snapshot);
  expect(() => find({ CI: 'true', REPRISE_ACCEPT: '1' })).toThrow('refused in CI');
  await find({ REPRISE_ACCEPT: '1' });
  expect(readFileSync(file, 'utf8')).toBe(snapshot);
  expect(existsSync(`${file}.new`)).toBe(false);
});

it('defines a failing test for a case without a recording and for recordings without a case', async () => {
  project = createProject({
    'cases/new/new.toml': '[run]\nargs = ["x"]\n',
    'cases/old/old.score': '{}\n',
  });
  const [unrecorded, orphan, ...others] = listIn(project);
  expect(others).toEqual([]);
  expect((await caught(unrecorded?.run())).message).toContain('record it: reprise test new --record');
  expect((await caught(orphan?.run())).message).toContain('holds recordings without a case file: old.score');
});

it('throws for a folder without cases', () => {
  project = createProject({});
  expect(() => listIn(project as Project, { folder: 'tapes' })).toThrow('no test cases in tapes/');
});
