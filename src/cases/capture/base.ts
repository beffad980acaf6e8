import { cpSync, existsSync, mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import type { Redactor } from '../../effects/redact/index.ts';
import type { RecordedActivity } from '../../engine/recording/index.ts';
import type { PinnedBase } from '../../engine/step/index.ts';
import { type BasePack, objectEnvironment, packBase, type WorktreeState } from '../../git/delta/index.ts';
import { openRepository, type Repository } from '../../git/index.ts';
import type { CommandIo, Project } from '../../project/index.ts';
import type { DefinitionFiles } from '../../project/journal/index.ts';
import type { CaseBase } from '../manifest/manifest.ts';
import { sha256 } from '../record/case-files.ts';
import { refused, runAgain } from './segments.ts';

export interface BaseRequest {
  readonly repository: Repository;
  /** Folder of git objects that were saved with the journal. */
  readonly objectsDir: string;
  readonly base: PinnedBase;
  readonly activities: readonly RecordedActivity[];
  /** Commits that other processes moved the branch to during the run, in order. */
  readonly moves?: readonly string[] | undefined;
}

/** Opens the repository of a project. Throws CAPTURE_REFUSED if the project is in a subfolder, and NOT_A_REPOSITORY. */
export async function repositoryOf({ root }: Project, { env }: CommandIo): Promise<Repository> {
  const repository = await openRepository({ cwd: root, inheritEnv: env });
  if (repository.root === root) return repository;
  throw refused(
    'the project is in a subfolder of its repository; only a project at the top of its repository can be captured',
    'run the workflow at the top of a repository, for example in a separate clone, and capture that run',
  );
}

/** Writes the pack of the base commit and returns the `[base]` table of the case. Throws CAPTURE_REFUSED. */
export async function writeBase(
  folder: string,
  request: BaseRequest,
): Promise<{ readonly base: CaseBase; readonly packed: Readonly<Record<string, string>> }> {
  const { commit, ref: branch } = request.base;
  const { pack, shallow } = await captureBase(request);
  const sha = sha256(pack);
  const file = `blobs/${sha}`;
  mkdirSync(join(folder, 'blobs'), { recursive: true });
  writeFileSync(join(folder, file), pack);
  return { base: { commit, branch, pack: file, shallow }, packed: { [file]: sha } };
}

/** Packs the commit that the run started from, with its files. Throws CAPTURE_REFUSED. */
async function captureBase(request: BaseRequest): Promise<BasePack> {
  const { repository, base, activities, moves = [] } = request;
  if (base.ref === 'HEAD') {
    throw refused(
      'no branch was checked out when the run started, and a case needs one',
      `check out a branch: git switch --create work; then ${runAgain}`,
    );
  }
  await refuseMissing(request);
  const tips = new Set(activities.flatMap(statesOf).flatMap(commitsOf));
  const commit = moves.at(-1) ?? base.commit;
  return packBase({ repository, commit, tips: [...tips, ...(moves.length > 0 ? [base.commit] : [])] });
}

async function refuseMissing({
  repository,
  objectsDir,
  base,
  activities,
  moves = [],
}: BaseRequest): Promise<void> {
  const wanted = new Set([base.commit, ...moves, ...activities.flatMap(statesOf).flatMap(namesOf)]);
  const env = objectEnvironment(`${repository.commonDir}/objects`, objectsDir);
  const found = await repository.git
    .with({ env })
    .ok(['cat-file', '--batch-check'], { input: [...wanted, ''].join('\n') });
  const missing = found.split('\n').filter(line => line.endsWith(' missing'));
  const [first] = missing;
  if (first === undefined) return;
  const others = missing.length > 1 ? ` and ${missing.length - 1} more` : '';
  throw refused(
    `git objects of the run are missing from the repository: ${first.replace(' missing', '').slice(0, 12)}${others}`,
    `\`git gc\` removes objects that no branch reaches; ${runAgain} before the branches of its workspaces are deleted`,
  );
}

const statesOf = ({ before, after }: RecordedActivity): readonly WorktreeState[] =>
  [before, after].filter(state => state !== null);

const commitsOf = ({ head, refs }: WorktreeState): readonly string[] =>
  [head.commit, ...Object.values(refs)].filter(commit => commit !== null);

const namesOf = (state: WorktreeState): readonly string[] => [
  ...commitsOf(state),
  state.tree,
  state.index.tree,
];

/** Returns the definition files whose text at the start of the run differs from that in the base commit. */
export async function filesBesideBase(
  files: DefinitionFiles,
  { repository, base, redactor }: Pick<BaseRequest, 'repository' | 'base'> & { readonly redactor: Redactor },
): Promise<DefinitionFiles> {
  const differing: [string, string][] = [];
  for (const [path, text] of Object.entries(files)) {
    const { code, stdout } = await repository.git.run(['show', `${base.commit}:${path}`]);
    if (code !== 0 || redactor.text(stdout) !== text) differing.push([path, text]);
  }
  return Object.fromEntries(differing);
}

/** Copies the git objects saved with a journal; a session may have made some that no branch reaches any more. */
export function copyObjects(journal: string, to: string): void {
  const from = join(journal, 'objects');
  if (existsSync(from)) cpSync(from, to, { recursive: true });
}
