import { execFileSync } from 'node:child_process';
import {
  chmodSync,
  existsSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  realpathSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { join, relative } from 'node:path';
import { expect, onTestFinished } from 'vitest';
import { stateOf } from '../support/state.ts';
import {
  type CliOptions,
  type CliResult,
  createProject,
  type Files,
  parseLines,
  type RunningCli,
  type TestProject,
} from './run-inline.ts';

/** Repository in which a test makes runs and captures them. */
export interface CaptureProject extends TestProject {
  git(...args: readonly string[]): string;
  /** Starts a command with `agent-tool` on the PATH. */
  begin(args: readonly string[], options?: CliOptions): RunningCli;
  cli(args: readonly string[], options?: CliOptions): Promise<CliResult>;
  /** Id of the run in the output of a command with `--json`. */
  runOf(ended: Pick<CliResult, 'stdout'>): string;
  /** Replays a case in a fresh clone in another folder, with only node, git and a shell on the PATH. */
  playElsewhere(name: string): Promise<CliResult>;
  /** Paths of the files below `cases/`. */
  cases(): readonly string[];
}

/**
 * Creates the repository. Scripted agents change files with the program `agent-tool`, which runs the shell script `tool`.
 * It exists only while runs are made, so a replay that started an agent would fail.
 */
export function captureProject({
  files,
  tool = 'sed -i "s/Helo/Hello/" "$@"',
}: {
  readonly files: Files;
  readonly tool?: string;
}): CaptureProject {
  const project = createProject({ git: true, files });
  const { root } = project;
  const git = (...args: readonly string[]): string =>
    execFileSync('git', args, { cwd: root, encoding: 'utf8', stdio: 'pipe' }).trimEnd();
  git('symbolic-ref', 'HEAD', 'refs/heads/main');
  git('config', 'user.name', 'ana');
  git('config', 'user.email', 'ana@example.com');
  git('add', '--all');
  git('commit', '--quiet', '--message', 'Initial commit');
  const tools = temporaryFolder();
  writeFileSync(join(tools, 'agent-tool'), `#!/bin/sh\nset -e\n${tool}\n`);
  chmodSync(join(tools, 'agent-tool'), 0o755);
  const path = `${tools}:${process.env['PATH']}`;
  const begin = (args: readonly string[], options: CliOptions = {}) =>
    project.start(args, { ...options, env: { PATH: path, ...options.env } });
  return {
    ...project,
    git,
    begin,
    cli: (args, options) => begin(args, options).ended,
    runOf: ({ stdout }) => parseLines<{ runId: string }>(stdout).at(-1)?.runId ?? '',
    playElsewhere: name => playElsewhere(root, name),
    cases: () => filesBelow(join(root, 'cases')),
  };
}

/** Replays a case in a fresh clone in another folder, with only node, git and a shell on the PATH. */
export async function playElsewhere(root: string, name: string): Promise<CliResult> {
  const player = createProject();
  const elsewhere = join(temporaryFolder(), 'clone');
  const git = (cwd: string, ...args: readonly string[]) =>
    execFileSync('git', args, { cwd, encoding: 'utf8', stdio: 'pipe' });
  git(root, 'add', 'cases');
  git(root, 'commit', '--quiet', '--message', 'Add cases', '--', 'cases');
  git(root, 'clone', '--quiet', '--no-local', root, elsewhere);
  const bin = temporaryFolder();
  for (const program of ['git', 'sh', 'bash'])
    symlinkSync(
      execFileSync('sh', ['-c', `command -v ${program}`], { encoding: 'utf8' }).trim(),
      join(bin, program),
    );
  symlinkSync(process.execPath, join(bin, 'node'));
  return player.run(['test', name], {
    cwd: relative(player.root, elsewhere),
    env: { PATH: bin, HOME: bin, CI: 'true' },
  });
}

function temporaryFolder(): string {
  const folder = realpathSync(mkdtempSync(join(tmpdir(), 'reprise-capture-')));
  onTestFinished(() => rmSync(folder, { recursive: true, force: true, maxRetries: 5 }));
  return folder;
}

const filesBelow = (folder: string): readonly string[] =>
  existsSync(folder)
    ? readdirSync(folder, { recursive: true, withFileTypes: true })
        .filter(entry => entry.isFile())
        .map(entry => relative(folder, join(entry.parentPath, entry.name)))
        .sort()
    : [];

/** Folder of the newest journal of a project. */
export function newestJournal({ root }: TestProject): string {
  const folder = join(root, stateOf(root), 'journal');
  return join(folder, readdirSync(folder).sort().at(-1) ?? '');
}

/** Captures a run, replays the case where no agent can start, and returns the text of the case file. */
export async function captureAndPlay(project: CaptureProject, run: string, name: string): Promise<string> {
  const captured = await project.cli(['capture', run, name]);
  expect(captured, captured.stderr).toMatchObject({ code: 0 });
  const played = await project.playElsewhere(name);
  expect(played).toMatchObject({ code: 0, stderr: '' });
  const short = name.split('/').at(-1);
  return readFileSync(join(project.root, 'cases', name, `${short}.toml`), 'utf8');
}
