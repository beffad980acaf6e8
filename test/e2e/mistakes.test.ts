import { describe, expect, it } from 'vitest';
import { createProject, runInline } from './run-inline.ts';

const files = {
  '.reprise/workflows/deploy.yaml':
    'inputs: { env: { type: choice, options: [qa, live], required: true }, n: { type: number } }\nsteps:\n  - { id: a, run: "touch ran" }\n',
  '.reprise/workflows/test.yaml': 'steps:\n  - { id: a, run: "true" }\n',
};

/** Each with what it prints on standard error; none of them may write anything. */
const mistakes = async (args: readonly string[], more: Readonly<Record<string, string>> = {}) => {
  const { code, stdout, stderr, project } = await runInline({ files: { ...files, ...more }, args });
  expect({ code, stdout }).toEqual({ code: 2, stdout: '' });
  expect(project.has('.reprise/state')).toBe(false);
  expect(project.has('ran')).toBe(false);
  return project.stable(stderr);
};

describe('a mistake ends with 2, says what is wrong and what to type, and changes nothing', () => {
  it('unknown workflow', async () => {
    expect(await mistakes(['run', 'deplyo'])).toMatchInlineSnapshot();
    expect(await mistakes(['run', 'something-else'])).toMatchInlineSnapshot();
    expect(await mistakes(['run', './none.yaml'])).toMatchInlineSnapshot();
  });

  it('unknown command, flag or argument', async () => {
    expect(await mistakes(['rnu'])).toMatchInlineSnapshot();
    expect(await mistakes(['run', 'deploy', '--max-concurent', '3'])).toMatchInlineSnapshot();
    expect(await mistakes(['run', 'deploy', '--max-concurrent', 'many'])).toMatchInlineSnapshot();
    expect(await mistakes(['cancel'])).toMatchInlineSnapshot();
    expect(await mistakes(['run', 'deploy', 'twice'])).toMatchInlineSnapshot();
  });

  it('missing, unknown or wrong input', async () => {
    expect(await mistakes(['run', 'deploy'])).toMatchInlineSnapshot();
    expect(await mistakes(['run', 'deploy', '-i', 'env=prod', '-i', 'n=many', '-i', 'evn=qa'])).toMatchInlineSnapshot();
    expect(await mistakes(['run', 'deploy', '-i', 'env'])).toMatchInlineSnapshot();
    expect(await mistakes(['run', 'deploy', '--input-json', '[1]'])).toMatchInlineSnapshot();
    expect(await mistakes(['run', 'deploy', '--input-file', 'none.json'])).toMatchInlineSnapshot();
  });

  it('a definition with several problems', async () => {
    const bad = 'steps:\n  - { id: a, rnu: "true" }\n  - { id: b, needs: [c], run: "echo ${{ steps.a.outputs.x }}" }\n';
    expect(await mistakes(['run', 'bad.yaml'], { 'bad.yaml': bad })).toMatchInlineSnapshot();
  });

  it('a module that cannot be loaded, or that exports no workflow', async () => {
    expect(await mistakes(['run', 'bad.mjs'], { 'bad.mjs': 'throw new TypeError("not today");\n' })).toMatchInlineSnapshot();
    expect(await mistakes(['run', 'bad.mjs'], { 'bad.mjs': 'export const x = 1;\n' })).toMatchInlineSnapshot();
    expect(await mistakes(['run', 'bad.mjs'], { 'bad.mjs': 'import "reprise";\n' })).toMatchInlineSnapshot();
  });

  it('settings that make no sense', async () => {
    const config = { 'reprise.yaml': 'runtime: { max_concurrent_workers: 0 }\n' };
    expect(await mistakes(['run', 'test'], config)).toMatchInlineSnapshot();
    const { code, stderr } = await runInline({ files, args: ['run', 'test'], env: { REPRISE_MAX_CONCURRENT_WORKERS: 'all' } });
    expect({ code, stderr }).toMatchInlineSnapshot();
  });

  it('no runs yet', async () => {
    expect(await mistakes(['resume'])).toMatchInlineSnapshot();
    expect(await mistakes(['show', 'abc'])).toMatchInlineSnapshot();
  });

  it('unknown or ambiguous run', async () => {
    const project = createProject({ files });
    await project.run(['run', 'test']);
    for (const command of ['resume', 'replay', 'history', 'show', 'cancel', 'approve', 'signal']) {
      const { code, stderr } = await project.run([command, 'zzz!', ...(command === 'signal' ? ['go'] : [])]);
      expect({ code, stderr }).toEqual({ code: 2, stderr: 'error[RUN_NOT_FOUND]: there is no run zzz!\n  hint: see which runs there are: reprise list\n' });
    }
    const { code, stderr } = await project.run(['show', '']);
    expect({ code, stderr }).toMatchInlineSnapshot();
  });
});

describe('help', () => {
  it('is printed on standard output when asked for, and on standard error when nothing was', async () => {
    const asked = await runInline({ args: ['--help'] });
    expect(asked).toMatchObject({ code: 0, stderr: '' });
    expect(asked.stdout).toContain('reprise run deploy');
    const nothing = await runInline({ args: [] });
    expect(nothing).toMatchObject({ code: 2, stdout: '' });
    expect(nothing.stderr).toContain('Usage: reprise');
    const ofRun = await runInline({ args: ['run', '--help'] });
    expect(ofRun.stdout).toMatchInlineSnapshot();
  });

  it('prints the version', async () => {
    for (const flag of ['--version', '-v']) {
      expect(await runInline({ args: [flag] })).toMatchObject({ code: 0, stdout: '0.1.0\n', stderr: '' });
    }
  });
});
