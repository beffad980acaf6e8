import { mkdtemp, readFile, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { delimiter, join } from 'node:path';
import { createGit, type Git } from '../../git/git.ts';

/** A git pack that is in a recorded file. */
export interface Pack {
  readonly file: string;
  readonly content: Buffer;
}

export interface PackedObject {
  readonly id: string;
  readonly type: string;
  /** One character a byte. */
  readonly bytes: string;
}

export interface OpenedPacks {
  /** Those that no object could be read of. */
  readonly unreadable: readonly Pack[];
  objects(): AsyncGenerator<PackedObject>;
  fileOf(id: string): Promise<string | undefined>;
}

export const isPack = (content: Buffer): boolean => content.subarray(0, 4).toString('latin1') === 'PACK';

export interface PackOptions {
  readonly packs: readonly Pack[];
  /** Folders of objects on which packs may be based without having them. */
  readonly objects: readonly string[];
}

/** Unpacks into a repository of its own, which is gone afterwards. */
export async function withPacks<T>(
  options: PackOptions,
  use: (opened: OpenedPacks) => Promise<T>,
): Promise<T> {
  const folder = await mkdtemp(join(tmpdir(), 'reprise-scan-'));
  try {
    const git = createGit({ cwd: folder });
    await git.ok(['init', '--quiet', '--bare', '--template=', '.']);
    return await use(await openPacks(git, options));
  } finally {
    await rm(folder, { recursive: true, force: true });
  }
}

async function openPacks(git: Git, { packs, objects }: PackOptions): Promise<OpenedPacks> {
  const indexing = git.with({ env: { GIT_ALTERNATE_OBJECT_DIRECTORIES: objects.join(delimiter) } });
  const fileOfPack = new Map<string, string>();
  let left = packs;
  for (let before = -1; left.length > 0 && left.length !== before; ) {
    before = left.length;
    const failed: Pack[] = [];
    // What one pack is based on may be in another, so those that fail are tried again as long as any succeeds.
    for (const pack of left) {
      const name = await indexPack(indexing, pack);
      if (name === undefined) failed.push(pack);
      else fileOfPack.set(name, pack.file);
    }
    left = failed;
  }
  let files: Promise<ReadonlyMap<string, string>> | undefined;
  return {
    unreadable: left,
    objects: () => objectsOf(git),
    fileOf: async id => {
      files ??= filesOfObjects(git, fileOfPack);
      return (await files).get(id);
    },
  };
}

async function indexPack(git: Git, { content }: Pack): Promise<string | undefined> {
  const result = await git.run(['index-pack', '--stdin', '--fix-thin'], {
    input: content.toString('latin1'),
    encoding: 'bytes',
  });
  return result.code === 0 ? result.stdout.trim().split('\t').at(-1) : undefined;
}

/** So much is held in memory at once, unless a single object is larger. */
const portionBytes = 64 * 2 ** 20;

async function* objectsOf(git: Git): AsyncGenerator<PackedObject> {
  const listed = await git.ok(['cat-file', '--batch-all-objects', '--batch-check']);
  let ids: string[] = [];
  let total = 0;
  for (const line of listed.split('\n')) {
    const [id = '', , size] = line.split(' ');
    if (id !== '') ids.push(id);
    total += Number(size ?? 0);
    if (id !== '' && total < portionBytes) continue;
    if (ids.length > 0) yield* readObjects(git, ids);
    ids = [];
    total = 0;
  }
}

async function* readObjects(git: Git, ids: readonly string[]): AsyncGenerator<PackedObject> {
  const input = ids.map(id => `${id}\n`).join('');
  const output = await git.ok(['cat-file', '--batch'], { input, encoding: 'bytes' });
  for (let at = 0; at < output.length; ) {
    const end = output.indexOf('\n', at);
    const [id = '', type = '', size] = output.slice(at, end).split(' ');
    const next = end + 1 + Number(size);
    yield { id, type, bytes: output.slice(end + 1, next) };
    at = next + 1;
  }
}

async function filesOfObjects(
  git: Git,
  fileOfPack: ReadonlyMap<string, string>,
): Promise<ReadonlyMap<string, string>> {
  const files = new Map<string, string>();
  for (const [pack, file] of fileOfPack) {
    const index = await readFile(join(git.cwd, 'objects', 'pack', `pack-${pack}.idx`));
    const listed = await git.ok(['show-index'], { input: index.toString('latin1'), encoding: 'bytes' });
    for (const line of listed.split('\n')) {
      const id = line.split(' ')[1];
      if (id !== undefined && !files.has(id)) files.set(id, file);
    }
  }
  return files;
}

/** What the trees that were seen call an object: `src/key.pem`. */
export class ObjectNames {
  readonly #parents = new Map<string, { readonly tree: string; readonly name: string }>();

  add({ id: tree, type, bytes }: PackedObject): void {
    if (type !== 'tree') return;
    for (let at = 0; at < bytes.length; ) {
      const end = bytes.indexOf('\0', at);
      const name = Buffer.from(bytes.slice(bytes.indexOf(' ', at) + 1, end), 'latin1').toString();
      const id = Buffer.from(bytes.slice(end + 1, end + 21), 'latin1').toString('hex');
      if (!this.#parents.has(id)) this.#parents.set(id, { tree, name });
      at = end + 21;
    }
  }

  pathOf(id: string): string | undefined {
    const parent = this.#parents.get(id);
    if (!parent) return undefined;
    const above = this.pathOf(parent.tree);
    return above === undefined ? parent.name : `${above}/${parent.name}`;
  }
}
