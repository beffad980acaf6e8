import { existsSync } from 'node:fs';
import { resolve } from 'node:path';
import { RepriseError } from '../core/index.ts';
import { diffOf, openRepository, resolveCommit } from '../git/index.ts';
import {
  type CommandIo,
  type ExitCode,
  exitCodes,
  findProject,
  type Project,
  type ProjectOptions,
  selectRun,
  type UnitWork,
  unitWork,
  withStoredRuns,
  writeLines,
} from '../project/index.ts';
import { type Paint, painter } from '../terminal/index.ts';
import { runStatusOf, safeText } from '../view/index.ts';

export interface DiffCommandOptions extends ProjectOptions {
  readonly run: string;
  /** Step (`fix`) or copy (`fix:1`). A step with a selection stands for its selected copy. */
  readonly step: string;
  /** Whether to print only the changed files and their line counts. */
  readonly stat?: boolean | undefined;
}

/** Prints the changes of a step or copy. While it is running, uncommitted changes are included. */
export async function diffCommand(
  { io }: { readonly io: CommandIo },
  options: DiffCommandOptions,
): Promise<ExitCode> {
  const project = findProject(io, options);
  const work = await withStoredRuns({ project, mode: 'readonly' }, async store => {
    const { runId } = await selectRun(store, options.run);
    return unitWork(runStatusOf(runId, await store.read(runId)).view, options.step, 'diff');
  });
  const text = await diffText(work, { io, project, stat: options.stat === true });
  if (text === '') writeLines(io.err, `${work.step.path} has no changes`);
  else writeLines(text => io.out(text), io.isTTY.stdout ? shown(text, painter(io.color.out)) : text);
  return exitCodes.ok;
}

interface DiffContext {
  readonly io: CommandIo;
  readonly project: Project;
  readonly stat: boolean;
}

async function diffText({ step, workspace }: UnitWork, { io, project, stat }: DiffContext): Promise<string> {
  const repository = await openRepository({ cwd: project.root, inheritEnv: io.env });
  const { base, branch, saved } = workspace;
  const folder = resolve(project.state.historyRoot, workspace.path);
  if (!step.hasEnded && existsSync(folder))
    return diffOf({ repository, base, head: { workspace: folder }, stat });
  const { git } = repository;
  const head =
    (await resolveCommit(git, saved?.commit ?? '')) ?? (await resolveCommit(git, `refs/heads/${branch}`));
  if (head !== undefined) return diffOf({ repository, base, head, stat });
  if (saved === undefined) return '';
  throw new RepriseError(
    'GIT_FAILED',
    `the changes of ${step.path} are gone: branch ${branch} does not exist`,
    {
      hint: `if they have landed, see them with: git log ${base.slice(0, 10)}..`,
    },
  );
}

/** The diff for a terminal: colored, and without the control characters of the files. */
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
