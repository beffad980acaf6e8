import { copyFileSync, existsSync, mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import { RepriseError } from '../core/errors.ts';
import type { Git } from '../git/git.ts';
import { openRepository, resolveCommit } from '../git/repository.ts';
import { type Paint, painter } from '../report/paint.ts';
import { safeText } from '../report/safe-text.ts';
import { type ExitCode, exitCodes } from './exit-codes.ts';
import { type CommandIo, writeLines } from './io.ts';
import { findProject, type Project, type ProjectOptions } from './project.ts';
import { standingOf } from './standing.ts';
import { selectRun, withStoredRuns } from './stored-runs.ts';
import { type UnitWork, unitWork } from './unit-work.ts';

export interface DiffCommandOptions extends ProjectOptions {
  readonly run: string;
  /** `fix`, `fix:1`; a step with a selection means the worker that was selected. */
  readonly step: string;
  /** Only which files, and how much. */
  readonly stat?: boolean | undefined;
}

/** Prints what a step or worker has changed, uncommitted work included while it is at it. */
export async function diffCommand(
  { io }: { readonly io: CommandIo },
  options: DiffCommandOptions,
): Promise<ExitCode> {
  const project = findProject(io, options);
  const work = await withStoredRuns({ project, mode: 'readonly' }, async store => {
    const { runId } = await selectRun(store, options.run);
    return unitWork(standingOf(runId, await store.read(runId)).view, options.step, 'diff');
  });
  const text = await diffText(work, { io, project, stat: options.stat === true });
  if (text === '') writeLines(io.err, `${work.step.path} has changed nothing`);
  else writeLines(text => io.out(text), io.isTTY.stdout ? shown(text, painter(io.color.out)) : text);
  return exitCodes.ok;
}

interface Circumstances {
  readonly io: CommandIo;
  readonly project: Project;
  readonly stat: boolean;
}

async function diffText(
  { step, workspace }: UnitWork,
  { io, project, stat }: Circumstances,
): Promise<string> {
  const { git } = await openRepository({ cwd: project.root, inheritEnv: io.env });
  const diff = [
    ...['diff', '--no-ext-diff', '--no-textconv', '--no-color', '--find-renames'],
    ...(stat ? ['--stat', `--stat-width=${io.columns}`] : ['--patch', '--src-prefix=a/', '--dst-prefix=b/']),
    '--end-of-options',
    workspace.base,
  ];
  const folder = resolve(project.root, workspace.path);
  if (!step.hasEnded && !workspace.removed && existsSync(folder))
    return withEveryFile(git.with({ cwd: folder }), own => own.ok([...diff, '--']));
  const head =
    (await resolveCommit(git, workspace.saved?.commit ?? '')) ?? (await tipOf(git, workspace.branch));
  if (head !== undefined) return git.ok([...diff, head, '--']);
  if (workspace.saved === undefined) return '';
  throw new RepriseError(
    'GIT_FAILED',
    `the work of ${step.path} is gone: there is no branch ${workspace.branch}`,
    {
      hint: `if it was landed, look there: git log ${workspace.base.slice(0, 10)}..`,
    },
  );
}

const tipOf = (git: Git, branch: string): Promise<string | undefined> =>
  resolveCommit(git, `refs/heads/${branch}`);

/** New files count too, and the agent's own index stays as it is. */
async function withEveryFile(git: Git, work: (git: Git) => Promise<string>): Promise<string> {
  const index = await git.line(['rev-parse', '--path-format=absolute', '--git-path', 'index']);
  const folder = mkdtempSync(join(tmpdir(), 'reprise-diff-'));
  try {
    const copy = join(folder, 'index');
    if (existsSync(index)) copyFileSync(index, copy);
    const own = git.with({ env: { GIT_INDEX_FILE: copy } });
    await own.ok(['add', '--intent-to-add', '--', '.']);
    return await work(own);
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
}

/** For a terminal: what the files hold cannot do anything to it. */
const shown = (text: string, paint: Paint): string =>
  text
    .split('\n')
    .map(line => paint(colourOf(line), safeText(line).replaceAll('\n', ' ')))
    .join('\n');

function colourOf(line: string): 'bold' | 'cyan' | 'green' | 'red' | undefined {
  if (/^(diff --git|index |--- |\+\+\+ |new file|deleted file|rename |similarity )/.test(line)) return 'bold';
  if (line.startsWith('@@')) return 'cyan';
  if (line.startsWith('+')) return 'green';
  return line.startsWith('-') ? 'red' : undefined;
}
