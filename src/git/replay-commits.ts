import { type Git, gitFailed } from './git.ts';

/** What a series of commits becomes on another base. Nothing is checked out: only objects are written. */
export type Replayed =
  | { readonly kind: 'commit'; readonly commit: string }
  | { readonly kind: 'nothing' }
  | { readonly kind: 'conflict'; readonly files: readonly string[]; readonly subject: string };

interface ListedCommit {
  readonly id: string;
  readonly parents: readonly string[];
}

/**
 * The commits of `tip` that `onto` does not have, one after another on top of `onto`. Authors, committers, dates and
 * messages stay, so that the same work on the same base always gives the same commits; signatures do not, because they
 * would be wrong.
 */
export async function replayCommits(
  git: Git,
  { onto, tip }: { onto: string; tip: string },
): Promise<Replayed> {
  const ancestor = (await git.run(['merge-base', onto, tip])).stdout.trim();
  if (ancestor === tip) return { kind: 'nothing' };
  if (ancestor === onto) return { kind: 'commit', commit: tip };
  const listed = await listCommits(git, { onto, tip });
  const series = listed.filter(({ parents }) => parents.length < 2);
  const result = await pickAll(git, { onto, series });
  if (series.length === listed.length) return result;
  return withMerges(git, { onto, tip, result });
}

async function listCommits(
  git: Git,
  { onto, tip }: { onto: string; tip: string },
): Promise<readonly ListedCommit[]> {
  const output = await git.ok(['rev-list', '--reverse', '--topo-order', '--parents', `${onto}..${tip}`]);
  return output
    .split('\n')
    .filter(line => line !== '')
    .map(line => {
      const [id = '', ...parents] = line.split(' ');
      return { id, parents };
    });
}

async function pickAll(
  git: Git,
  { onto, series }: { onto: string; series: readonly ListedCommit[] },
): Promise<Replayed> {
  let current = onto;
  for (const commit of series) {
    const picked = await pick(git, commit, current);
    switch (picked.kind) {
      case 'conflict':
        return picked;
      case 'nothing':
        break;
      case 'commit':
        current = picked.commit;
    }
  }
  return current === onto ? { kind: 'nothing' } : { kind: 'commit', commit: current };
}

async function pick(git: Git, { id, parents }: ListedCommit, onto: string): Promise<Replayed> {
  const [parent] = parents;
  if (parent === onto) return { kind: 'commit', commit: id };
  const source = await readCommit(git, id);
  const ontoTree = await treeOf(git, onto);
  // A commit with the tree of `onto` and the parent of `id`: their merge base is then that parent, as a pick needs it.
  const side = await writeCommit(git, { tree: ontoTree, parents, lines: stampLines, message: '' });
  const merged = await mergeTrees(git, side, id);
  if (merged.kind === 'conflict') return { ...merged, subject: subjectOf(source.message) };
  const wasEmpty = parent !== undefined && (await treeOf(git, parent)) === source.tree;
  if (merged.tree === ontoTree && !wasEmpty) return { kind: 'nothing' };
  const commit = await writeCommit(git, { ...source, tree: merged.tree, parents: [onto] });
  return { kind: 'commit', commit };
}

/**
 * Picking leaves merge commits out, and with them what was resolved or added in a merge. If that makes a difference, all
 * of it becomes one commit, so that nothing is lost and history stays a line.
 */
async function withMerges(
  git: Git,
  { onto, tip, result }: { onto: string; tip: string; result: Replayed },
): Promise<Replayed> {
  const source = await readCommit(git, tip);
  const merged = await mergeTrees(git, onto, tip);
  if (merged.kind === 'conflict') return { ...merged, subject: subjectOf(source.message) };
  if (merged.tree === (await treeOf(git, onto))) return { kind: 'nothing' };
  if (result.kind === 'commit' && (await treeOf(git, result.commit)) === merged.tree) return result;
  const subjects = await git.ok(['log', '--reverse', '--no-merges', '--format=%s', `${onto}..${tip}`]);
  const [first = subjectOf(source.message), ...others] = subjects.split('\n').filter(line => line !== '');
  const message = [first, ...(others.length > 0 ? ['', ...others.map(line => `- ${line}`)] : []), ''].join(
    '\n',
  );
  const commit = await writeCommit(git, {
    tree: merged.tree,
    parents: [onto],
    lines: source.lines.filter(line => !line.startsWith('encoding ')),
    message: Buffer.from(message).toString('latin1'),
  });
  return { kind: 'commit', commit };
}

type Merged =
  | { readonly kind: 'clean'; readonly tree: string }
  | { readonly kind: 'conflict'; readonly files: readonly string[] };

export async function mergeTrees(git: Git, ours: string, theirs: string): Promise<Merged> {
  const args = ['merge-tree', '--write-tree', '--allow-unrelated-histories', '--no-messages'];
  const result = await git.run([...args, '--name-only', '-z', ours, theirs]);
  const [tree = '', ...names] = result.stdout.split('\0');
  if (result.code === 0) return { kind: 'clean', tree };
  if (result.code !== 1) throw gitFailed(args, result);
  return { kind: 'conflict', files: [...new Set(names.filter(name => name !== ''))].sort() };
}

/** A commit in bytes: one character for each, so that no encoding is changed. */
export interface CommitText {
  readonly tree: string;
  readonly parents: readonly string[];
  /** Its author, committer and encoding. */
  readonly lines: readonly string[];
  readonly message: string;
}

export const stampLines = ['author', 'committer'].map(role => `${role} reprise <reprise@localhost> 0 +0000`);

async function readCommit(git: Git, id: string): Promise<CommitText> {
  const text = await git.ok(['cat-file', 'commit', id], { encoding: 'bytes' });
  const end = text.indexOf('\n\n');
  const header = (end === -1 ? text : text.slice(0, end)).split('\n');
  return {
    tree: header[0]?.replace('tree ', '') ?? '',
    parents: [],
    lines: header.filter(line => /^(author|committer|encoding) /.test(line)),
    message: end === -1 ? '' : text.slice(end + 2),
  };
}

export function writeCommit(git: Git, { tree, parents, lines, message }: CommitText): Promise<string> {
  const header = [`tree ${tree}`, ...parents.map(parent => `parent ${parent}`), ...lines];
  const input = `${header.join('\n')}\n\n${message}`;
  return git.line(['hash-object', '-t', 'commit', '-w', '--stdin'], { input, encoding: 'bytes' });
}

const treeOf = (git: Git, commit: string): Promise<string> => git.line(['rev-parse', `${commit}^{tree}`]);

const subjectOf = (message: string): string => Buffer.from(message.split('\n')[0] ?? '', 'latin1').toString();
