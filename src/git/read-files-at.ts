import type { Git } from './git.ts';

export interface FilesAtRequest {
  readonly git: Git;
  readonly commit: string;
  /** From the top of the repository, with slashes; `.` is the top. */
  readonly folder: string;
  /** Larger files are listed without their text. */
  readonly maxBytes?: number | undefined;
}

export interface FileAt {
  /** From the top of the repository. */
  readonly path: string;
  /** The id of its content: the same as long as the text is the same. */
  readonly blob: string;
  readonly bytes: number;
  /** `undefined` if it is too large. */
  readonly text: string | undefined;
}

const oneMegabyte = 1024 * 1024;

/**
 * The files directly in a folder as a commit has them, by name; none if it has no such folder. Folders, links and
 * submodules are left out. Two processes, however many files there are. Throws GIT_FAILED if there is no such commit.
 */
export async function readFilesAt({
  git,
  commit,
  folder,
  maxBytes = oneMegabyte,
}: FilesAtRequest): Promise<readonly FileAt[]> {
  const top = folder.replace(/^(\.?\/)+|\/+$/g, '');
  const below = top === '' || top === '.' ? [] : [`${top}/`];
  const list = ['--literal-pathspecs', 'ls-tree', '-z', '--long', '--full-tree', commit, '--', ...below];
  const files = (await git.ok(list)).split('\0').flatMap(toFile);
  const texts = await readBlobs(
    git,
    files.filter(({ bytes }) => bytes <= maxBytes).map(({ blob }) => blob),
  );
  return files.map(file => ({ ...file, text: texts.get(file.blob) }));
}

/** Such as `100644 blob <id>      12<tab>issues/a.md`. */
function toFile(entry: string): Omit<FileAt, 'text'> | [] {
  const tab = entry.indexOf('\t');
  const [mode, type, blob = '', bytes] = entry.slice(0, tab).split(/ +/);
  const isFile = type === 'blob' && mode !== '120000';
  return isFile ? { path: entry.slice(tab + 1), blob, bytes: Number(bytes) } : [];
}

async function readBlobs(git: Git, ids: readonly string[]): Promise<ReadonlyMap<string, string>> {
  const texts = new Map<string, string>();
  const wanted = [...new Set(ids)];
  if (wanted.length === 0) return texts;
  const input = wanted.map(id => `${id}\n`).join('');
  const output = await git.ok(['cat-file', '--batch'], { input, encoding: 'bytes' });
  let at = 0;
  for (const id of wanted) {
    const start = output.indexOf('\n', at) + 1;
    const size = Number(output.slice(at, start).trimEnd().split(' ')[2]);
    texts.set(id, Buffer.from(output.slice(start, start + size), 'latin1').toString());
    at = start + size + 1;
  }
  return texts;
}
