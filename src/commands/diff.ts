import { existsSync } from 'node:fs';
import { resolve } from 'node:path';
import { RepriseError } from '../core/errors.ts';
import { diffOf } from '../git/diff.ts';
import { openRepository, resolveCommit } from '../git/repository.ts';
import { type ExitCode, exitCodes } from '../project/exit-codes.ts';
import { type CommandIo, writeLines } from '../project/host.ts';
import { findProject, type Project, type ProjectOptions } from '../project/project.ts';
import { selectRun, type UnitWork, unitWork, withStoredRuns } from '../project/runs.ts';
import { type Paint, painter } from '../terminal/text.ts';
import { standingOf } from '../view/run-status.ts';
import { safeText } from '../view/safe-text.ts';

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

async function diffText({ step, workspace }: UnitWork, circumstances: Circumstances): Promise<string> {
  const { io, project, stat } = circumstances;
  const repository = await openRepository({ cwd: project.root, inheritEnv: io.env });
  const { base, branch, saved } = workspace;
  const folder = resolve(project.root, workspace.path);
  if (!step.hasEnded && existsSync(folder))
    return diffOf({ repository, base, head: { workspace: folder }, stat });
  const { git } = repository;
  const head =
    (await resolveCommit(git, saved?.commit ?? '')) ?? (await resolveCommit(git, `refs/heads/${branch}`));
  if (head !== undefined) return diffOf({ repository, base, head, stat });
  if (saved === undefined) return '';
  throw new RepriseError('GIT_FAILED', `the work of ${step.path} is gone: there is no branch ${branch}`, {
    hint: `if it was landed, look there: git log ${base.slice(0, 10)}..`,
  });
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
