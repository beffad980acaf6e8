import { existsSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect, it, onTestFinished } from 'vitest';
import { loadCase } from '../manifest/load.ts';
import { type Stage, setStage } from './stage.ts';

function folder(): string {
  const made = mkdtempSync(join(tmpdir(), 'reprise-stage-'));
  onTestFinished(() => rmSync(made, { recursive: true, force: true }));
  return made;
}

async function stageOf(toml: string, project = folder()): Promise<Stage> {
  const stage = await setStage({
    manifest: loadCase({ file: 'one.toml', displayFile: 'one.toml', text: toml }),
    caseFolder: project,
    project,
    packages: { installed: undefined, reprise: process.cwd() },
    path: process.env['PATH'],
  });
  onTestFinished(stage.remove);
  return stage;
}

const files = (workflow: string) => `
[files]
"README.md" = "Hello\\n"
"run.sh" = "#!/bin/sh\\n"
".reprise/workflows/one.yaml" = "${workflow}"
`;

it('starts from the same commit in every folder and with any workflows', async () => {
  const one = await stageOf(`[run]\nargs = ["one"]\n${files('steps: []')}`);
  const other = await stageOf(`[run]\nargs = ["one"]\n${files('steps: [] # changed')}`);
  expect(other.base).toBe(one.base);
  expect(await one.git.line(['ls-files'])).toBe('README.md\nrun.sh');
  expect(await one.git.line(['status', '--porcelain'])).toBe('');
  expect(readFileSync(join(one.repo, '.reprise/workflows/one.yaml'), 'utf8')).toBe('steps: []');
});

it('uses the definitions of the project if the case says so, and falls back to those of the case', async () => {
  const project = folder();
  mkdirSync(join(project, '.reprise/workflows'), { recursive: true });
  writeFileSync(join(project, '.reprise/workflows/one.yaml'), 'steps: [] # of the project');
  writeFileSync(join(project, 'secret.txt'), 'not a definition');
  const toml = (source: string) =>
    `definitions = "${source}"\n[run]\nargs = ["one"]\n${files('steps: []')}\n"reprise.yaml" = "record: false"\n`;
  const text = ({ repo }: Stage, file: string) => readFileSync(join(repo, file), 'utf8');
  const own = await stageOf(toml('case'), project);
  expect(text(own, '.reprise/workflows/one.yaml')).toBe('steps: []');
  const current = await stageOf(toml('project'), project);
  expect(text(current, '.reprise/workflows/one.yaml')).toBe('steps: [] # of the project');
  expect(text(current, 'reprise.yaml')).toBe('record: false');
  expect(existsSync(join(current.repo, 'secret.txt'))).toBe(false);
});

it('deletes its folder when it is removed', async () => {
  const stage = await stageOf('[run]\nargs = ["one"]\n');
  expect(existsSync(join(stage.folder, 'node_modules', 'reprise', 'package.json'))).toBe(true);
  stage.remove();
  expect(existsSync(stage.folder)).toBe(false);
});
