import { cpSync, existsSync, mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import type { Redactor } from '../../effects/redact/redact.ts';
import type { Recording as RecordedActivity } from '../../engine/recording/session-file.ts';
import type { PinnedBase } from '../../engine/step/base.ts';
import { type BasePack, packBase } from '../../git/delta/pack.ts';
import { objectEnvironment } from '../../git/delta/shadow.ts';
import type { WorktreeState } from '../../git/delta/state.ts';
import { openRepository, type Repository } from '../../git/repository.ts';
import type { CommandIo } from '../../project/host.ts';
import type { DefinitionFiles } from '../../project/journal/run-journal.ts';
import type { Project } from '../../project/project.ts';
import type { CaseBase } from '../manifest/manifest.ts';
import { sha256 } from '../record/case-files.ts';
import { refused, runAgain } from './legs.ts';

export interface BaseRequest {
  readonly repository: Repository;
  /** Objects that were kept beside the journal. */
  readonly objectsDir: string;
  readonly base: PinnedBase;
  readonly activities: readonly RecordedActivity[];
  /** Where others moved the branch meanwhile, in this order. */
  readonly moves?: readonly string[] | undefined;
}

/** The repository of a project that a case can be made of. Throws CAPTURE_REFUSED, NOT_A_REPOSITORY. */
export async function repositoryOf({ root }: Project, { env }: CommandIo): Promise<Repository> {
  const repository = await openRepository({ cwd: root, inheritEnv: env });
  if (repository.root === root) return repository;
  throw refused(
    'the project is not at the top of its repository, where a case has it',
    'run the workflow at the top of the repository, or in a clone of its own, and capture that run',
  );
}

/** Writes what a case begins from, and gives what its file says of it. Throws CAPTURE_REFUSED. */
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

/** The commit that the run began from, with its files. Throws CAPTURE_REFUSED. */
async function captureBase(request: BaseRequest): Promise<BasePack> {
  const { repository, base, activities, moves = [] } = request;
  if (base.ref === 'HEAD') {
    throw refused(
      'no branch was checked out when the run began, and a case begins on one',
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
  const names = missing.length > 1 ? ` and ${missing.length - 1} more` : '';
  throw refused(
    `objects of the run are no longer in the repository: ${first.replace(' missing', '').slice(0, 12)}${names}`,
    `they were removed, as \`git gc\` does with what no branch holds; ${runAgain} before the branches of its workspaces are removed`,
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

/** The definitions that are not in the commit as they were when the run began. */
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

/** Of a journal: what sessions made that no branch may hold any more. */
export function copyObjects(journal: string, to: string): void {
  const from = join(journal, 'objects');
  if (existsSync(from)) cpSync(from, to, { recursive: true });
}
