import { mkdtemp, readFile, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { delimiter, join } from 'node:path';
import {
  beginsAt,
  endsHere,
  type NamedPath,
  pathForms,
  placeholderName,
} from '../../effects/redact/redact.ts';
import { mayHoldToken, tokenPatterns } from '../../effects/redact/secret-patterns.ts';
import { formsOf, isSecretValue, type Secret } from '../../effects/redact/secrets.ts';
import { createGit, type Git } from '../../git/git.ts';

/** What was found, and where in the text. */
interface Finding {
  readonly kind: 'secret' | 'path';
  readonly name: string;
  /** Counts from 1. */
  readonly line: number;
}

/** Looks through bytes, each of which is one character of the text. */
export type Detect = (bytes: string) => readonly Finding[];

interface DetectorOptions {
  readonly secrets: readonly Secret[];
  readonly paths: readonly NamedPath[];
  /** Looked for as a whole word. */
  readonly user?: string | undefined;
}

type Spot = Omit<Finding, 'line'> & { readonly at: number };
type Look = (text: string) => readonly Spot[];

export function createDetector({ secrets, paths, user }: DetectorOptions): Detect {
  const looks = [lookForSecrets(secrets), lookForTokens, lookForPaths(paths), lookForUser(user)];
  const ours = new Set([...secrets, ...tokenPatterns].map(({ name }) => placeholderName(name)));
  const holdsSecret = (name: string) =>
    !ours.has(name) && looks.slice(0, 2).some(look => look(name).length > 0);
  return bytes => {
    const text = bytes.replace(/<(?:PATH|SECRET):([\w.-]+)>/g, (placeholder, name: string) =>
      holdsSecret(name) ? placeholder : blank(placeholder),
    );
    const found = looks.flatMap(look => look(text)).map(spot => withLine(text, spot));
    return withoutRepeats([...found, ...hiddenByEscapes(text, looks)]);
  };
}

/** What is redacted is not looked at, and everything else stays where it is. */
const blank = (placeholder: string): string => `<${' '.repeat(placeholder.length - 2)}>`;

function lookForSecrets(secrets: readonly Secret[]): Look {
  const names = new Map<string, string>();
  for (const { name, value } of secrets.filter(secret => isSecretValue(secret.value))) {
    for (const form of formsOf(value)) names.set(asBytes(form), name);
  }
  return lookForAny(names, found => ({ kind: 'secret', name: found }));
}

const lookForTokens: Look = text =>
  (mayHoldToken(text) ? tokenPatterns : []).flatMap(({ name, pattern }) =>
    [...text.matchAll(pattern)].map(match => ({
      kind: 'secret' as const,
      name,
      at: match.index + (match[1]?.length ?? 0),
    })),
  );

function lookForPaths(paths: readonly NamedPath[]): Look {
  const names = new Map([...pathForms(paths)].map(([form, name]) => [asBytes(form), name]));
  const look = lookForAny(names, name => ({ kind: 'path', name }), endsHere);
  return text => look(text).filter(({ at }) => beginsAt(text, at));
}

function lookForUser(user: string | undefined): Look {
  if (user === undefined) return () => [];
  const word = new RegExp(`(?<![A-Za-z0-9_])${escaped(asBytes(user))}(?![A-Za-z0-9_])`, 'g');
  return text =>
    [...text.matchAll(word)].map(({ index }) => ({ kind: 'path', name: 'user name', at: index }));
}

function lookForAny(
  names: ReadonlyMap<string, string>,
  describe: (name: string) => Omit<Finding, 'line'>,
  after = '',
): Look {
  if (names.size === 0) return () => [];
  const longestFirst = [...names.keys()].sort((a, b) => b.length - a.length);
  const any = new RegExp(`(?:${longestFirst.map(escaped).join('|')})${after}`, 'g');
  return text =>
    [...text.matchAll(any)].map(match => ({ ...describe(names.get(match[0]) ?? ''), at: match.index }));
}

const escaped = (text: string): string => text.replace(/[\\^$.*+?()[\]{}|/-]/g, '\\$&');

const asBytes = (text: string): string => Buffer.from(text).toString('latin1');

function withLine(text: string, { kind, name, at }: Spot): Finding {
  let line = 1;
  for (let next = text.indexOf('\n'); next >= 0 && next < at; next = text.indexOf('\n', next + 1)) line++;
  return { kind, name, line };
}

/** JSON inside of JSON inside of JSON. */
const deepest = 3;

/** `\u0073ecret` is a secret as well. Line by line, because undoing an escape may make a new line. */
function hiddenByEscapes(text: string, looks: readonly Look[]): readonly Finding[] {
  if (!text.includes('\\')) return [];
  return text.split('\n').flatMap((content, index) => {
    const findings: Finding[] = [];
    let inner = content;
    for (let depth = 0; depth < deepest && inner.includes('\\'); depth++) {
      inner = withoutEscapes(inner);
      for (const { kind, name } of looks.flatMap(look => look(inner)))
        findings.push({ kind, name, line: index + 1 });
    }
    return findings;
  });
}

const controls: Readonly<Record<string, string>> = { b: '\b', f: '\f', n: '\n', r: '\r', t: '\t' };

const withoutEscapes = (text: string): string =>
  text.replace(/(?:\\u[0-9a-fA-F]{4})+|\\(["\\/bfnrt])/g, (found, plain: string | undefined) =>
    plain === undefined ? asBytes(unicode(found)) : (controls[plain] ?? plain),
  );

const unicode = (escapes: string): string =>
  String.fromCharCode(
    ...escapes
      .split('\\u')
      .slice(1)
      .map(code => Number.parseInt(code, 16)),
  );

function withoutRepeats(findings: readonly Finding[]): readonly Finding[] {
  const unique = new Map(
    findings.map(finding => [`${finding.line} ${finding.kind} ${finding.name}`, finding]),
  );
  return [...unique.values()].sort((a, b) => a.line - b.line);
}

/** A git pack that is in a recorded file. */
export interface Pack {
  readonly file: string;
  readonly content: Buffer;
}

interface PackedObject {
  readonly id: string;
  readonly type: string;
  /** One character a byte. */
  readonly bytes: string;
}

interface OpenedPacks {
  /** Those that no object could be read of. */
  readonly unreadable: readonly Pack[];
  objects(): AsyncGenerator<PackedObject>;
  fileOf(id: string): Promise<string | undefined>;
}

export const isPack = (content: Buffer): boolean => content.subarray(0, 4).toString('latin1') === 'PACK';

interface PackOptions {
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
