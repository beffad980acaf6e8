import { readFile, rm } from 'node:fs/promises';
import { delimiter, join } from 'node:path';
import {
  beginsAt,
  endsHere,
  findMarked,
  formsOf,
  isSecretValue,
  mayHoldToken,
  type NamedPath,
  pathForms,
  placeholderName,
  type Secret,
  type SecretMarks,
  tokenPatterns,
} from '../../effects/redact/index.ts';
import { createGit, type Git } from '../../git/index.ts';
import { temporaryFolder } from '../../process/index.ts';

/** A secret or a path in text. */
interface LeakFinding {
  readonly kind: 'secret' | 'path';
  readonly name: string;
  /** Line number, counted from 1. */
  readonly line: number;
}

/** Searches text with one character per byte. */
export type Detect = (bytes: string) => readonly LeakFinding[];

interface DetectorOptions {
  readonly secrets: readonly Secret[];
  /** Marks of secrets whose values are not known. */
  readonly marks?: readonly SecretMarks[] | undefined;
  /** Search for tokens of well-known services. */
  readonly tokens?: LeakSearch | undefined;
  readonly paths: readonly NamedPath[];
  /** User name, found as a whole word. */
  readonly user?: string | undefined;
}

type Match = Omit<LeakFinding, 'line'> & { readonly at: number };
type LeakSearch = (text: string) => readonly Match[];

export function createDetector(options: DetectorOptions): Detect {
  const { secrets, marks = [], tokens = () => [], paths, user } = options;
  const secretSearches = [searchSecrets(secrets), searchTokens, tokens, ...marks.map(searchMarked)];
  const searches = [...secretSearches, searchPaths(paths), searchUser(user)];
  const named = [...secrets, ...tokenPatterns, ...marks.flatMap(each => each.marks)];
  const knownNames = new Set(named.map(({ name }) => placeholderName(name)));
  const containsSecret = (name: string) =>
    !knownNames.has(name) && secretSearches.some(search => search(name).length > 0);
  return bytes => {
    const text = bytes.replace(/<(?:PATH|SECRET):([\w.-]+)>/g, (placeholder, name: string) =>
      containsSecret(name) ? placeholder : blank(placeholder),
    );
    const found = searches.flatMap(search => search(text)).map(match => withLine(text, match));
    return withoutRepeats([...found, ...hiddenByEscapes(text, searches)]);
  };
}

/** Hides a placeholder from the searches, and keeps the positions of the text after it. */
const blank = (placeholder: string): string => `<${' '.repeat(placeholder.length - 2)}>`;

function searchSecrets(secrets: readonly Secret[]): LeakSearch {
  const names = new Map<string, string>();
  for (const { name, value } of secrets.filter(secret => isSecretValue(secret.value))) {
    for (const form of formsOf(value)) names.set(asBytes(form), name);
  }
  return searchAny(names, name => ({ kind: 'secret', name }));
}

const searchTokens: LeakSearch = text =>
  (mayHoldToken(text) ? tokenPatterns : []).flatMap(({ name, pattern }) =>
    [...text.matchAll(pattern)].map(match => ({
      kind: 'secret' as const,
      name,
      at: match.index + (match[1]?.length ?? 0),
    })),
  );

/** Loads the rules of gitleaks, which take a few milliseconds to parse. Go's expressions need an engine of their own. */
export async function searchForTokens(): Promise<LeakSearch> {
  const [{ RE2JS }, { tokenRules }] = await Promise.all([import('re2js'), import('./token-rules.ts')]);
  const rules = tokenRules
    .trim()
    .split('\n')
    .map(line => {
      const [id = '', entropy, keywords = '', regex = ''] = line.split('\t');
      return {
        name: id.toUpperCase().replaceAll('-', '_'),
        entropy: Number(entropy),
        keywords: keywords.split(' '),
        regex,
      };
    });
  const compiled = new Map<string, ReturnType<typeof RE2JS.compile>>();
  const patternOf = (regex: string) => {
    const known = compiled.get(regex) ?? RE2JS.compile(regex);
    compiled.set(regex, known);
    return known;
  };
  // One pass for all keywords. The look-ahead finds a keyword inside or at the end of another one too.
  const longestFirst = [...new Set(rules.flatMap(({ keywords }) => keywords))].sort(
    (a, b) => b.length - a.length,
  );
  const any = new RegExp(`(?=(${longestFirst.map(escaped).join('|')}))`, 'g');
  return text => {
    const positions = new Map<string, number[]>();
    for (const { 1: word = '', index } of text.toLowerCase().matchAll(any)) {
      const at = positions.get(word) ?? [];
      at.push(index);
      positions.set(word, at);
    }
    if (positions.size === 0) return [];
    const placesOf = (word: string) =>
      [...positions].flatMap(([found, at]) => (found.startsWith(word) ? at : []));
    return rules.flatMap(({ name, entropy, keywords, regex }) => {
      const found: Match[] = [];
      for (const [start, end] of windowsAround(keywords.flatMap(placesOf))) {
        const matcher = patternOf(regex).matcher(text.slice(start, end));
        while (matcher.find()) {
          const secret = matcher.groupCount() > 0 ? (matcher.group(1) ?? '') : (matcher.group() ?? '');
          if (entropyOf(secret) > entropy) found.push({ kind: 'secret', name, at: start + matcher.start() });
        }
      }
      return found;
    });
  };
}

/** A token is close to its keyword. Searching only there keeps large files fast. */
const reach = { before: 100, after: 800 } as const;

function windowsAround(places: readonly number[]): readonly (readonly [number, number])[] {
  const windows: [number, number][] = [];
  for (const at of [...places].sort((a, b) => a - b)) {
    const last = windows.at(-1);
    const start = Math.max(0, at - reach.before);
    if (last && start <= last[1]) last[1] = at + reach.after;
    else windows.push([start, at + reach.after]);
  }
  return windows;
}

/** Shannon entropy in bits per character. Words and examples have less than random tokens. */
function entropyOf(text: string): number {
  const counts = new Map<string, number>();
  for (const char of text) counts.set(char, (counts.get(char) ?? 0) + 1);
  return [...counts.values()].reduce(
    (sum, count) => sum - (count / text.length) * Math.log2(count / text.length),
    0,
  );
}

const searchMarked =
  (marks: SecretMarks): LeakSearch =>
  text =>
    findMarked(marks, text).map(({ name, at }) => ({ kind: 'secret', name, at }));

function searchPaths(paths: readonly NamedPath[]): LeakSearch {
  const names = new Map([...pathForms(paths)].map(([form, name]) => [asBytes(form), name]));
  const search = searchAny(names, name => ({ kind: 'path', name }), endsHere);
  return text => search(text).filter(({ at }) => beginsAt(text, at));
}

/** Name of the leak of a user name. */
export const userNameLeak = 'user name';

function searchUser(user: string | undefined): LeakSearch {
  if (user === undefined) return () => [];
  const word = new RegExp(`(?<![A-Za-z0-9_])${escaped(asBytes(user))}(?![A-Za-z0-9_])`, 'g');
  return text =>
    [...text.matchAll(word)].map(({ index }) => ({ kind: 'path', name: userNameLeak, at: index }));
}

function searchAny(
  names: ReadonlyMap<string, string>,
  describe: (name: string) => Omit<LeakFinding, 'line'>,
  after = '',
): LeakSearch {
  if (names.size === 0) return () => [];
  const longestFirst = [...names.keys()].sort((a, b) => b.length - a.length);
  const any = new RegExp(`(?:${longestFirst.map(escaped).join('|')})${after}`, 'g');
  return text =>
    [...text.matchAll(any)].map(match => ({ ...describe(names.get(match[0]) ?? ''), at: match.index }));
}

const escaped = (text: string): string => text.replace(/[\\^$.*+?()[\]{}|/-]/g, '\\$&');

const asBytes = (text: string): string => Buffer.from(text).toString('latin1');

function withLine(text: string, { kind, name, at }: Match): LeakFinding {
  let line = 1;
  for (let next = text.indexOf('\n'); next >= 0 && next < at; next = text.indexOf('\n', next + 1)) line++;
  return { kind, name, line };
}

/** Levels of JSON inside JSON to decode. */
const maxDepth = 3;

/** Finds secrets that are escaped, such as `\u0073ecret`. Works line by line, because a decoded escape may be a newline. */
function hiddenByEscapes(text: string, searches: readonly LeakSearch[]): readonly LeakFinding[] {
  if (!text.includes('\\')) return [];
  return text.split('\n').flatMap((content, index) => {
    const findings: LeakFinding[] = [];
    let inner = content;
    for (let depth = 0; depth < maxDepth && inner.includes('\\'); depth++) {
      inner = withoutEscapes(inner);
      for (const { kind, name } of searches.flatMap(search => search(inner)))
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

function withoutRepeats(findings: readonly LeakFinding[]): readonly LeakFinding[] {
  const unique = new Map(
    findings.map(finding => [`${finding.line} ${finding.kind} ${finding.name}`, finding]),
  );
  return [...unique.values()].sort((a, b) => a.line - b.line);
}

/** A git pack in a recorded file. */
export interface Pack {
  readonly file: string;
  readonly content: Buffer;
}

interface PackedObject {
  readonly id: string;
  readonly type: string;
  /** Content, with one character per byte. */
  readonly bytes: string;
}

interface OpenedPacks {
  /** Packs that git could not index. */
  readonly unreadable: readonly Pack[];
  objects(): AsyncGenerator<PackedObject>;
  /** Returns the recorded file that contains an object. */
  fileOf(id: string): Promise<string | undefined>;
}

export const isPack = (content: Buffer): boolean => content.subarray(0, 4).toString('latin1') === 'PACK';

interface PackOptions {
  readonly packs: readonly Pack[];
  /** Object folders with the base objects of thin packs. */
  readonly objects: readonly string[];
}

/** Unpacks into a temporary repository, and deletes it afterwards. */
export async function withPacks<T>(
  options: PackOptions,
  use: (opened: OpenedPacks) => Promise<T>,
): Promise<T> {
  const folder = temporaryFolder('scan');
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
    // One pack may be based on another, so failed ones are retried as long as any succeeds.
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

/** Size of the objects that are held in memory together, unless a single object is larger. */
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

/** Paths of objects, such as `src/key.pem`, collected from tree objects. */
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
