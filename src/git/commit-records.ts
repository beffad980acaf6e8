import type { Git } from './git.ts';

/** A commit in bytes: one character for each, so that no encoding is changed. */
export interface CommitText {
  readonly tree: string;
  readonly parents: readonly string[];
  /** Its author, committer and encoding. */
  readonly lines: readonly string[];
  readonly message: string;
}

/** A commit as it is stored, without its signature. */
export interface CommitRecord extends CommitText {
  readonly subject: string;
}

/** Reads several commits with one process. Those that are missing are left out. */
export async function readCommits(
  git: Git,
  ids: readonly string[],
): Promise<ReadonlyMap<string, CommitRecord>> {
  const input = [...ids, ''].join('\n');
  const output = await git.ok(['cat-file', '--batch'], { input, encoding: 'bytes' });
  const records = new Map<string, CommitRecord>();
  for (let at = 0; at < output.length; ) {
    const lineEnd = output.indexOf('\n', at);
    const [id = '', type, size] = output.slice(at, lineEnd).split(' ');
    if (type === 'missing') {
      at = lineEnd + 1;
      continue;
    }
    const end = lineEnd + 1 + Number(size);
    if (type === 'commit') records.set(id, parseCommit(output.slice(lineEnd + 1, end)));
    at = end + 1;
  }
  return records;
}

/** Of the text of a commit, one character for each byte. */
export function parseCommit(text: string): CommitRecord {
  const end = text.indexOf('\n\n');
  const header = (end === -1 ? text : text.slice(0, end)).split('\n');
  const message = end === -1 ? '' : text.slice(end + 2);
  const valuesOf = (name: string) =>
    header.filter(line => line.startsWith(`${name} `)).map(line => line.slice(name.length + 1));
  return {
    tree: valuesOf('tree')[0] ?? '',
    parents: valuesOf('parent'),
    lines: header.filter(line => /^(author|committer|encoding) /.test(line)),
    message,
    subject: Buffer.from(message.split('\n')[0] ?? '', 'latin1').toString(),
  };
}

/** For commits that nobody sees. */
export const stampLines = ['author', 'committer'].map(role => `${role} reprise <reprise@localhost> 0 +0000`);

export function commitBytes({ tree, parents, lines, message }: CommitText): string {
  const header = [`tree ${tree}`, ...parents.map(parent => `parent ${parent}`), ...lines];
  return `${header.join('\n')}\n\n${message}`;
}

export const writeCommit = (git: Git, commit: CommitText): Promise<string> =>
  git.line(['hash-object', '-t', 'commit', '-w', '--stdin'], {
    input: commitBytes(commit),
    encoding: 'bytes',
  });
