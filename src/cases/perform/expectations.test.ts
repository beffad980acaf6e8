import { mkdirSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { createGit } from '../../git/git.ts';
import { Lab, plainEnvironment } from '../../git/test-support.ts';
import type { Expectation } from '../manifest/manifest.ts';
import { checkExpectations } from './expectations.ts';

const nothing: Expectation = { exit: undefined, files: {}, main: undefined, output: [], notOutput: [] };
const step = { name: 'worker_a', position: { file: 'cases/two/two.toml', line: 7, column: 3 } };

function stageWith() {
  const lab = new Lab();
  const git = createGit({ cwd: lab.root, env: plainEnvironment });
  const check = (wanted: Partial<Expectation>, outcome: { exitCode?: number | null; output?: string } = {}) =>
    checkExpectations({
      step,
      expect: { ...nothing, ...wanted },
      exitCode: outcome.exitCode === undefined ? 0 : outcome.exitCode,
      output: outcome.output ?? '',
      repo: { git },
    });
  const messages = async (...args: Parameters<typeof check>) =>
    (await check(...args)).map(({ message, diff }) => (diff ? `${message}\n${diff}` : message)).join('\n');
  return { lab, check, messages };
}

describe('checkExpectations', () => {
  it('checks nothing by default', async () => {
    expect(await stageWith().check({}, { exitCode: null, output: 'x' })).toEqual([]);
  });

  it('reports the command and its position in the case file', async () => {
    expect(await stageWith().check({ exit: 0 }, { exitCode: 3 })).toEqual([
      {
        kind: 'expectation',
        step: 'worker_a',
        file: 'cases/two/two.toml',
        line: 7,
        message: 'expected exit code 0, got 3',
      },
    ]);
  });

  it('checks the exit code', async () => {
    const { messages } = stageWith();
    expect(await messages({ exit: 6 }, { exitCode: 6 })).toBe('');
    expect(await messages({ exit: 0 }, { exitCode: null })).toBe('expected exit code 0, but it was killed');
    const output = '1\n2\n3\n4\n\u001B[31m5\u001B[39m\n6\n\n';
    expect(await messages({ exit: 0 }, { exitCode: 1, output })).toMatchInlineSnapshot(`
      "expected exit code 0, got 1
      the output ends with:
      | ...
      | 2
      | 3
      | 4
      | 5
      | 6"
    `);
  });

  it('checks the content of files', async () => {
    const { lab, messages } = stageWith();
    lab.write('long.txt', '1\n2\n3\n4\n5\n6\n7\n');
    lab.write('empty.txt', '');
    lab.write('windows.txt', 'a\r\n');
    mkdirSync(join(lab.root, 'folder'));
    const exact = (content: string) => ({ kind: 'exact', content }) as const;
    const contains = (text: string) => ({ kind: 'contains', text }) as const;
    const absent = { kind: 'absent' } as const;
    expect(
      await messages({
        files: {
          'a.txt': exact('one\n'),
          'long.txt': contains('5\n6'),
          'none.txt': absent,
          'a.txt/below': absent,
        },
      }),
    ).toBe('');
    expect(await messages({ files: { 'a.txt': absent } })).toBe('expected a.txt not to exist, but it does');
    expect(await messages({ files: { folder: exact('') } })).toBe(
      'expected the file folder, but it does not exist',
    );
    expect(await messages({ files: { 'empty.txt': contains('x\ny') } })).toBe(
      'expected "x\\ny" in empty.txt, but the file is empty',
    );
    expect(await messages({ files: { 'none.txt': contains('x') } })).toBe(
      'expected "x" in none.txt, but the file does not exist',
    );
    expect(await messages({ files: { 'windows.txt': exact('a\n') } })).toBe(
      'windows.txt differs from the expected content in its line endings',
    );
    expect(await messages({ files: { 'long.txt': contains('x') } })).toMatchInlineSnapshot(`
      "expected "x" in long.txt
      the file contains:
      | 1
      | 2
      | 3
      | 4
      | 5
      | ... and 2 more lines"
    `);
    expect(
      await messages({ files: { 'long.txt': exact('1\n2\nthree\n4\n5\n6\n7\n') } }),
    ).toMatchInlineSnapshot(`
      "long.txt differs from the expected content
      @@ -1,6 +1,6 @@
       1
       2
      -three
      +3
       4
       5
       6
      "
    `);
  });

  it('checks the complete log of main, oldest first', async () => {
    const { lab, messages } = stageWith();
    lab.git('commit', '--quiet', '--allow-empty', '--message=fix: b');
    expect(await messages({ main: ['Begin', 'fix: b'] })).toBe('');
    expect(await messages({ main: ['Begin', 'fix: a', 'fix: b'] })).toMatchInlineSnapshot(`
      "the commits on main differ: expected 3 commits, got 2
      @@ -1,3 +1,2 @@
       Begin
      -fix: a
       fix: b
      "
    `);
    expect(await messages({ main: ['Begin'] })).toContain('expected 1 commit, got 2');
    lab.git('branch', '-m', 'other');
    expect(await messages({ main: [] })).toBe('expected commits on main, but the branch does not exist');
  });

  it('checks expected and forbidden output', async () => {
    const { messages } = stageWith();
    const output = 'landed 1 commit on main\n\u001B[1mall\u001B[22m done\n';
    expect(
      await messages({ output: ['landed', '/^ALL done$/im'], notOutput: ['a|b', '/x/'] }, { output }),
    ).toBe('');
    expect(await messages({ output: ['l.nded', '/x+/'] }, { output })).toMatchInlineSnapshot(`
      "expected "l.nded" in the output
      the output ends with:
      | landed 1 commit on main
      | all done
      expected /x+/ in the output
      the output ends with:
      | landed 1 commit on main
      | all done"
    `);
    expect(await messages({ notOutput: ['all done', '/main.all/s'] }, { output })).toMatchInlineSnapshot(`
      "expected no "all done" in the output
      got:
      | all done
      expected no /main.all/s in the output
      the output ends with:
      | landed 1 commit on main
      | all done"
    `);
    expect(await messages({ output: ['x'] })).toBe('expected "x" in the output, but it is empty');
  });

  it('reports all unmet expectations, not only the first', async () => {
    const found = await stageWith().check({ exit: 1, main: [], output: ['x'] });
    expect(found).toHaveLength(3);
  });
});
