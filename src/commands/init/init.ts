import { chmodSync, mkdirSync, realpathSync, renameSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { RepriseError } from '../../core/errors.ts';
import { openRepository, type Repository, resolveCommit } from '../../git/repository.ts';
import { type ExitCode, exitCodes } from '../../project/exit-codes.ts';
import { type CommandIo, writeLines } from '../../project/host.ts';
import { displayPath, excludeFromGit } from '../../project/project.ts';
import { jsonText } from '../../terminal/text.ts';
import { codeOf, type Decision, decideAll, type InitOptions, type Plan } from './plan.ts';
import { type InitReport, nextSteps, reportJson, reportLines } from './report.ts';

type Top = Repository & { readonly root: string };

/**
 * Sets a repository up, at its top, for workers: settings, agents, an example of a workflow and of a task. What is there
 * is changed only if somebody says so, and all questions are put before anything is written. Throws INIT_FAILED.
 */
export async function initCommand(
  { io }: { readonly io: CommandIo },
  options: InitOptions,
): Promise<ExitCode> {
  const repository = await topOf(io);
  if (repository instanceof RepriseError) {
    const { formatError } = await import('../../terminal/index.ts');
    writeLines(io.err, formatError(repository, { color: io.color.err }));
    return exitCodes.usage;
  }
  const plan = await decideAll(repository.root, io, options);
  if (plan === 'interrupted') {
    writeLines(io.err, 'interrupted: nothing was made and nothing was changed');
    return exitCodes.failed;
  }
  if (!options.dryRun) writeAll(plan.decisions, repository.root);
  const report = await reportOn(repository, io, { ...plan, isDryRun: options.dryRun === true });
  const shown = (path: string) => displayPath(io, join(repository.root, path));
  const task = plan.decisions.find(
    ({ file, outcome }) => file.path.endsWith('/example.md') && (outcome === 'made' || outcome === 'same'),
  );
  const next = nextSteps(report, { shown, task: task?.file.path });
  if (options.json) writeLines(io.out, jsonText(reportJson(report, next)));
  else writeLines(io.out, reportLines(report, { shown, next }).join('\n'));
  return exitCodes.ok;
}

async function topOf(io: CommandIo): Promise<Top | RepriseError> {
  try {
    const repository = await openRepository({ cwd: io.cwd, inheritEnv: io.env });
    const { root } = repository;
    if (root !== undefined) return { ...repository, root };
    const isBare = (await repository.git.run(['rev-parse', '--is-bare-repository'])).stdout.trim() === 'true';
    return isBare
      ? new RepriseError(
          'NOT_A_REPOSITORY',
          `${repository.commonDir} is a bare repository: it has no files to add to`,
          {
            hint: 'clone it, and type in the clone: reprise init',
          },
        )
      : new RepriseError('NOT_A_REPOSITORY', `${io.cwd} is inside of the folder that git keeps for itself`, {
          hint: 'go to the top of the repository, and type there: reprise init',
        });
  } catch (error) {
    if (!(error instanceof RepriseError) || error.code !== 'NOT_A_REPOSITORY') throw error;
    return new RepriseError('NOT_A_REPOSITORY', `${io.cwd} is not in a git repository`, {
      hint: 'make one, then set it up: git init -b main && reprise init',
    });
  }
}

/** Carries the decisions out. Throws INIT_FAILED with what was written before something could not be. */
export function writeAll(decisions: readonly Decision[], root: string): void {
  const done: string[] = [];
  for (const { file, outcome } of decisions) {
    if (outcome !== 'made' && outcome !== 'overwritten') continue;
    try {
      (outcome === 'made' ? makeFile : replaceFile)(join(root, file.path), file.text);
    } catch (cause) {
      const before = done.length === 0 ? 'Nothing was changed' : `Written before that: ${done.join(', ')}`;
      throw new RepriseError('INIT_FAILED', `${file.path} cannot be written: ${codeOf(cause)}. ${before}`, {
        cause,
        hint: 'what has been written is kept; go on with: reprise init',
      });
    }
    done.push(file.path);
  }
}

async function reportOn(
  { root, git }: Top,
  io: CommandIo,
  { decisions, notes, isDryRun }: Plan & { readonly isDryRun: boolean },
): Promise<InitReport> {
  const files = decisions.map(({ path, outcome, why }) => ({ path, outcome, why }));
  const paths = files.filter(({ outcome }) => outcome !== 'skipped').map(({ path }) => path);
  const excluded = isDryRun ? undefined : excludeFromGit(root);
  const ignored = await git.run(['check-ignore', '--no-index', '--stdin', '-z'], { input: paths.join('\0') });
  const status = await git.run(['status', '--porcelain', '-z', '--untracked-files=all', '--', ...paths]);
  return {
    root,
    isDryRun,
    files,
    notes,
    excludedBy: excluded === undefined ? undefined : displayPath(io, excluded),
    ignored: ignored.stdout.split('\0').filter(path => path !== ''),
    isCommitted: status.code === 0 && status.stdout === '',
    hasCommit: (await resolveCommit(git, 'HEAD')) !== undefined,
  };
}

/** Makes a file with its folders. One that has come into being meanwhile is not overwritten, and none is left half written. */
function makeFile(file: string, text: string): void {
  mkdirSync(dirname(file), { recursive: true });
  writeFileSync(file, '', { flag: 'wx' });
  try {
    writeFileSync(file, text);
  } catch (error) {
    rmSync(file, { force: true });
    throw error;
  }
}

/** Puts another text into a file at once: there is always one of the two. A link stays a link. */
function replaceFile(file: string, text: string): void {
  const target = realpathSync(file);
  const beside = `${target}.reprise-new`;
  try {
    writeFileSync(beside, text);
    chmodSync(beside, statSync(target).mode);
    renameSync(beside, target);
  } catch (error) {
    rmSync(beside, { force: true });
    throw error;
  }
}
