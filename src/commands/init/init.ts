import { chmodSync, mkdirSync, realpathSync, renameSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { RepriseError } from '../../core/index.ts';
import { openRepository, type Repository, resolveCommit } from '../../git/index.ts';
import {
  type CommandIo,
  displayPath,
  type ExitCode,
  excludeFromGit,
  exitCodes,
  writeLines,
} from '../../project/index.ts';
import { jsonText } from '../../terminal/index.ts';
import { codeOf, decideAll, type FileDecision, type InitOptions, type InitPlan } from './plan.ts';
import { type InitReport, nextSteps, reportJson, reportLines } from './report.ts';

type InitRepository = Repository & { readonly root: string };

/**
 * Sets up the repository around the current folder: settings, agents, an example workflow and an example task. Existing
 * files are overwritten only with consent, and all questions are asked before anything is written. Throws INIT_FAILED.
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
    writeLines(io.err, 'interrupted: nothing was created or changed');
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

async function topOf(io: CommandIo): Promise<InitRepository | RepriseError> {
  try {
    const repository = await openRepository({ cwd: io.cwd, inheritEnv: io.env });
    const { root } = repository;
    if (root !== undefined) return { ...repository, root };
    const isBare = (await repository.git.run(['rev-parse', '--is-bare-repository'])).stdout.trim() === 'true';
    return isBare
      ? new RepriseError(
          'NOT_A_REPOSITORY',
          `${repository.commonDir} is a bare repository, which has no working tree`,
          {
            hint: 'clone it and run this in the clone: reprise init',
          },
        )
      : new RepriseError('NOT_A_REPOSITORY', `${io.cwd} is inside the .git folder of a repository`, {
          hint: 'go to the root of the repository and run: reprise init',
        });
  } catch (error) {
    if (!(error instanceof RepriseError) || error.code !== 'NOT_A_REPOSITORY') throw error;
    return new RepriseError('NOT_A_REPOSITORY', `${io.cwd} is not in a git repository`, {
      hint: 'create one first: git init -b main && reprise init',
    });
  }
}

/** Writes the files. Throws INIT_FAILED, naming the files written before the failure. */
export function writeAll(decisions: readonly FileDecision[], root: string): void {
  const done: string[] = [];
  for (const { file, outcome } of decisions) {
    if (outcome !== 'made' && outcome !== 'overwritten') continue;
    try {
      (outcome === 'made' ? makeFile : replaceFile)(join(root, file.path), file.text);
    } catch (cause) {
      const before = done.length === 0 ? 'Nothing was changed' : `Already written: ${done.join(', ')}`;
      throw new RepriseError('INIT_FAILED', `${file.path} cannot be written: ${codeOf(cause)}. ${before}`, {
        cause,
        hint: 'written files are kept; after fixing the problem, run again: reprise init',
      });
    }
    done.push(file.path);
  }
}

async function reportOn(
  { root, git }: InitRepository,
  io: CommandIo,
  { decisions, notes, isDryRun }: InitPlan & { readonly isDryRun: boolean },
): Promise<InitReport> {
  const files = decisions.map(({ path, outcome, why }) => ({ path, outcome, why }));
  const paths = files.filter(({ outcome }) => outcome !== 'skipped').map(({ path }) => path);
  const excluded = isDryRun ? undefined : excludeFromGit(root, io.env);
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

/** Creates a file and its folders. Throws if the file exists by now, and removes a partly written file. */
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

/** Replaces the text of a file atomically. A symbolic link stays a link. */
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
