import { hash } from 'node:crypto';
import { RepriseError } from '../../core/index.ts';
import { type CommitText, commitBytes } from '../commits.ts';

/** Entry of a tree: a file, a symbolic link, or another tree. */
export interface TreeEntry {
  readonly mode: string;
  readonly id: string;
}

export type Tree = ReadonlyMap<string, TreeEntry>;

export interface StoredCommit extends CommitText {
  readonly id: string;
  readonly subject: string;
  /** Greater than the height of every parent. */
  readonly height: number;
}

export const folderMode = '40000';

/**
 * In-memory object database with git's own ids. It is append-only and its objects are immutable, so all clones of a model
 * share one.
 */
export class Objects {
  readonly #blobs = new Map<string, Buffer>();
  readonly #texts = new Map<string, string>();
  readonly #trees = new Map<string, Tree>();
  readonly #commits = new Map<string, StoredCommit>();
  readonly emptyTree = this.addTree(new Map());

  addBlob(content: Buffer | string): string {
    const bytes = typeof content === 'string' ? Buffer.from(content) : content;
    const id = idOf('blob', bytes);
    if (!this.#blobs.has(id)) this.#blobs.set(id, bytes);
    return id;
  }

  /** Adds a tree. The entries may be in any order. */
  addTree(entries: Tree): string {
    const sorted = [...entries].sort(byGitOrder);
    const parts = sorted.flatMap(([name, { mode, id }]) => [
      Buffer.from(`${mode} ${name}\0`),
      Buffer.from(id, 'hex'),
    ]);
    const id = idOf('tree', Buffer.concat(parts));
    if (!this.#trees.has(id)) this.#trees.set(id, new Map(sorted));
    return id;
  }

  /** Adds a commit. Its parents must be added first, unless history is cut off below it. */
  addCommit(text: CommitText): string {
    const id = idOfCommit(text);
    if (this.#commits.has(id)) return id;
    const { tree, parents, lines, message } = text;
    const height = 1 + Math.max(0, ...parents.map(parent => this.#commits.get(parent)?.height ?? 0));
    const subject = Buffer.from(message.split('\n')[0] ?? '', 'latin1').toString();
    this.#commits.set(id, { id, tree, parents, lines, message, subject, height });
    return id;
  }

  bytes(id: string): Buffer {
    return this.#blobs.get(id) ?? missing('file content', id);
  }

  text(id: string): string {
    const known = this.#texts.get(id);
    if (known !== undefined) return known;
    const text = this.bytes(id).toString();
    this.#texts.set(id, text);
    return text;
  }

  tree(id: string): Tree {
    return this.#trees.get(id) ?? missing('tree', id);
  }

  commit(id: string): StoredCommit {
    return this.#commits.get(id) ?? missing('commit', id);
  }

  /** Returns `undefined` if the commit is missing, because history may be cut off. */
  commitIfThere(id: string): StoredCommit | undefined {
    return this.#commits.get(id);
  }

  has(id: string): boolean {
    return this.#commits.has(id) || this.#trees.has(id) || this.#blobs.has(id);
  }
}

const idOf = (type: string, bytes: Buffer): string =>
  hash('sha1', Buffer.concat([Buffer.from(`${type} ${bytes.length}\0`), bytes]));

/** Returns the id that git gives the commit. */
export const idOfCommit = (text: CommitText): string =>
  idOf('commit', Buffer.from(commitBytes(text), 'latin1'));

/** Compares as git does, which sorts folders as if their names ended with a slash. */
function byGitOrder(
  [a, one]: readonly [string, TreeEntry],
  [b, other]: readonly [string, TreeEntry],
): number {
  const left = one.mode === folderMode ? `${a}/` : a;
  const right = other.mode === folderMode ? `${b}/` : b;
  return Buffer.compare(Buffer.from(left), Buffer.from(right));
}

function missing(what: string, id: string): never {
  throw new RepriseError('GIT_FAILED', `the ${what} ${id} is not in the model of the repository`);
}
