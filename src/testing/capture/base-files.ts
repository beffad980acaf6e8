import type { DefinitionFiles } from '../../commands/journal/definition-files.ts';
import type { PinnedBase } from '../../engine/base.ts';
import type { Recording as RecordedActivity } from '../../engine/recording/session-file.ts';
import { type BasePack, packBase } from '../../git/delta/base.ts';
import { objectEnvironment } from '../../git/delta/shadow.ts';
import type { WorktreeState } from '../../git/delta/state.ts';
import type { Repository } from '../../git/repository.ts';
import type { Redactor } from '../../world/redact.ts';
import { refused, runAgain } from './refusal.ts';

export interface BaseRequest {
  readonly repository: Repository;
  /** Objects that were kept beside the journal. */
  readonly objectsDir: string;
  readonly base: PinnedBase;
  readonly activities: readonly RecordedActivity[];
}

/** The commit that the run began from, with its files. Throws CAPTURE_REFUSED. */
export async function captureBase(request: BaseRequest): Promise<BasePack> {
  const { repository, base, activities } = request;
  if (base.ref === 'HEAD') {
    throw refused(
      'no branch was checked out when the run began, and a case begins on one',
      `check out a branch: git switch --create work; then ${runAgain}`,
    );
  }
  await refuseMissing(request);
  const tips = new Set(activities.flatMap(statesOf).flatMap(commitsOf));
  return packBase({ repository, commit: base.commit, tips: [...tips] });
}

async function refuseMissing({ repository, objectsDir, base, activities }: BaseRequest): Promise<void> {
  const wanted = new Set([base.commit, ...activities.flatMap(statesOf).flatMap(namesOf)]);
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
