import { mkdirSync, mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { type CommitText, parseCommit } from '../../../git/commit-records.ts';
import type { Git } from '../../../git/git.ts';
import type { Objects, TreeEntry } from '../../../git/model/objects.ts';
import type { Repository } from '../../../git/repository.ts';

/** Reads objects of a repository by their ids, with one process. */
export async function loadObjects(git: Git, ids: readonly string[], objects: Objects): Promise<void> {
  const wanted = [...new Set(ids)].filter(id => !objects.has(id));
  if (wanted.length === 0) return;
  const input = wanted.map(id => `${id}\n`).join('');
  const output = await git.ok(['cat-file', '--batch'], { input, encoding: 'bytes' });
  const commits = new Map<string, CommitText>();
  for (let at = 0; at < output.length; ) {
    const lineEnd = output.indexOf('\n', at);
    const [id = '', type, size] = output.slice(at, lineEnd).split(' ');
    const end = lineEnd + 1 + Number(type === 'missing' ? -1 : size);
    const text = output.slice(lineEnd + 1, Math.max(end, lineEnd + 1));
    if (type === 'commit') commits.set(id, parseCommit(text));
    else if (type === 'tree') objects.addTree(new Map(entriesOf(text)));
    else if (type === 'blob') objects.addBlob(Buffer.from(text, 'latin1'));
    at = end + 1;
  }
  addParentsFirst(commits, objects);
}

/** Each is `<mode> <name>`, a zero, and the bytes of an id. */
function* entriesOf(text: string): Iterable<readonly [string, TreeEntry]> {
  for (let at = 0; at < text.length; ) {
    const space = text.indexOf(' ', at);
    const zero = text.indexOf('\0', space);
    const name = Buffer.from(text.slice(space + 1, zero), 'latin1').toString();
    const id = Buffer.from(text.slice(zero + 1, zero + 21), 'latin1').toString('hex');
    yield [name, { mode: text.slice(at, space), id }];
    at = zero + 21;
  }
}

function addParentsFirst(commits: ReadonlyMap<string, CommitText>, objects: Objects): void {
  const waiting = [...commits.keys()];
  for (let id = waiting.at(-1); id !== undefined; id = waiting.at(-1)) {
    const commit = commits.get(id);
    const parents = (commit?.parents ?? []).filter(parent => commits.has(parent) && !objects.has(parent));
    if (commit && parents.length > 0 && !objects.has(id)) {
      waiting.push(...parents);
      continue;
    }
    waiting.pop();
    if (commit) objects.addCommit(commit);
  }
}

/** Reads what packs hold that lean on objects of the repository. Nothing is written there. */
export async function loadPacks(
  repository: Repository,
  packs: readonly Uint8Array[],
  objects: Objects,
): Promise<void> {
  const folder = mkdtempSync(join(tmpdir(), 'reprise-model-'));
  try {
    const own = join(folder, 'objects');
    mkdirSync(own);
    const git = repository.git.with({
      env: {
        GIT_OBJECT_DIRECTORY: own,
        GIT_ALTERNATE_OBJECT_DIRECTORIES: join(repository.commonDir, 'objects'),
      },
    });
    for (const pack of packs.filter(isAnythingIn)) {
      const input = Buffer.from(pack).toString('latin1');
      // Not unpacked: git would leave out what the repository has, of which the model knows the newest only.
      const indexing = ['-c', 'core.fsync=none', 'index-pack', '--stdin', '--fix-thin'];
      const said = await git.line(indexing, { input, encoding: 'bytes' });
      const index = join(own, 'pack', `pack-${said.slice(said.indexOf('\t') + 1)}.idx`);
      await loadObjects(git, await idsIn(git, index), objects);
    }
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
}

/** The number of its objects comes third, after the sign and the version. */
const isAnythingIn = (pack: Uint8Array): boolean => Buffer.from(pack).readUInt32BE(8) > 0;

async function idsIn(git: Git, index: string): Promise<readonly string[]> {
  const listed = await git.ok(['show-index'], {
    input: readFileSync(index, 'latin1'),
    encoding: 'bytes',
  });
  return listed.split('\n').flatMap(line => line.split(' ')[1] ?? []);
}
