import { rmSync } from 'node:fs';
import { describe, expect, it } from 'vitest';
import { createProject, parseLines, type TestProject } from './run-inline.ts';

const chain = (b = 'echo b >> marks') => `
steps:
  - { id: a, run: "echo a >> marks" }
  - { id: b, needs: [a], run: "${b}" }
  - { id: c, needs: [b], run: "echo c >> marks" }
`;

const runs = async (project: TestProject) =>
  parseLines<{ id: string; status: string }>((await project.run(['list', '--json'])).stdout);

describe('reprise resume', () => {
  it('reruns only failed steps and the steps skipped because of them', async () => {
    const project = createProject({ files: { 'chain.yaml': chain('[ -e fixed ] && echo b >> marks') } });
    expect(await project.run(['run', 'chain.yaml'])).toMatchObject({ code: 1 });
    project.write({ fixed: '' });
    expect(await project.run(['resume'])).toMatchObject({ code: 0 });
    expect(project.read('marks')).toBe('a\nb\nc\n');
  });

  it('prints the output of a completed run and reruns nothing', async () => {
    const project = createProject({ files: { 'chain.yaml': chain() } });
    const first = await project.run(['run', 'chain.yaml']);
    const again = await project.run(['resume']);
    expect(again).toMatchObject({ code: 0, stdout: first.stdout });
    expect(again.stderr).toContain('has already completed; nothing was rerun');
    expect(project.read('marks')).toBe('a\nb\nc\n');
  });

  it('refuses a changed definition, and reruns the changed steps with --rerun-changed', async () => {
    const project = createProject({ files: { 'chain.yaml': chain() } });
    await project.run(['run', 'chain.yaml']);
    project.write({ 'chain.yaml': chain('echo B >> marks') });
    const refused = await project.run(['resume']);
    expect(refused.code).toBe(2);
    expect(project.stable(refused.stderr)).toMatchInlineSnapshot(`
      "error[DEFINITION_CHANGED]: steps of run <run> that already ran have changed:
        b: changed
        hint: to rerun them and every step that depends on them: reprise resume <run> --rerun-changed
      "
    `);
    expect(project.read('marks')).toBe('a\nb\nc\n');
    expect(await project.run(['resume', '--rerun-changed'])).toMatchObject({ code: 0 });
    expect(project.read('marks')).toBe('a\nb\nc\nB\nc\n');
  });

  it('names the missing file if the definition was deleted', async () => {
    const project = createProject({ files: { 'old/chain.yaml': chain('exit 1') } });
    await project.run(['run', 'old/chain.yaml']);
    rmSync(`${project.root}/old`, { recursive: true });
    const { code, stderr } = await project.run(['resume']);
    expect(code).toBe(2);
    expect(stderr).toMatchInlineSnapshot(`
      "error[WORKFLOW_NOT_FOUND]: the definition of the run, old/chain.yaml, no longer exists
        hint: restore the file at this path
      "
    `);
  });

  it('works from any folder of the project', async () => {
    const project = createProject({
      files: { 'chain.yaml': chain('[ -e fixed ] && echo b >> marks'), 'deep/x': '' },
    });
    await project.run(['run', 'chain.yaml']);
    project.write({ fixed: '' });
    expect(await project.run(['resume'], { cwd: 'deep' })).toMatchObject({ code: 0 });
  });
});

describe('reprise resume --from', () => {
  it('forks a new run that keeps the earlier steps, and leaves the original unchanged', async () => {
    const project = createProject({ files: { 'chain.yaml': chain() } });
    await project.run(['run', 'chain.yaml']);
    const [old] = await runs(project);
    const before = (await project.run(['history', '--raw', '--json'])).stdout;
    const forked = await project.run(['resume', old?.id ?? '', '--from', 'b']);
    expect(forked.code, forked.stderr).toBe(0);
    const [fresh, ...others] = await runs(project);
    expect(others).toEqual([old]);
    expect(forked.stderr).toContain(`run ${fresh?.id} was forked from run ${old?.id} at step b`);
    expect(project.read('marks')).toBe('a\nb\nc\nb\nc\n');
    expect((await project.run(['history', old?.id ?? '', '--raw', '--json'])).stdout).toBe(before);
  });

  it('suggests the step that was probably meant', async () => {
    const project = createProject({
      files: { 'chain.yaml': chain().replaceAll('id: b', 'id: build').replaceAll('[b]', '[build]') },
    });
    await project.run(['run', 'chain.yaml']);
    const { code, stderr } = await project.run(['resume', '--from', 'biuld']);
    expect({ code, stderr }).toMatchInlineSnapshot(`
      {
        "code": 2,
        "stderr": "error[USAGE]: the workflow has no step biuld
        hint: did you mean build?
      ",
      }
    `);
  });
});
