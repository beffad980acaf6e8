import { readdir, readFile, readlink } from 'node:fs/promises';
import { homedir, userInfo } from 'node:os';
import { join } from 'node:path';
import { gunzipSync } from 'node:zlib';
import { RepriseError } from '../../core/errors.ts';
import { createRedactor, type NamedPath } from '../../effects/redact/redact.ts';
import type { Secret } from '../../effects/redact/secrets.ts';
import { createDetector, type Detect, isPack, ObjectNames, type Pack, withPacks } from './leak-detectors.ts';

/** Something that must not be in a recorded file. Its value is nowhere in here. */
export interface Leak {
  /** `unreadable`: a pack that could not be looked through, because what it is based on is not there. */
  readonly kind: 'secret' | 'path' | 'unreadable';
  /** Of the variable, of the kind of token, or of the path. */
  readonly name: string;
  /** Relative to the folder. */
  readonly file: string;
  readonly line?: number | undefined;
  /** In a pack: the object, and how trees call it. */
  readonly object?: string | undefined;
  readonly path?: string | undefined;
}

export interface LeakScanOptions {
  /** Of a finished case. */
  readonly folder: string;
  readonly secrets: readonly Secret[];
  /** Paths of this machine, beside its home folder. */
  readonly paths?: readonly NamedPath[] | undefined;
  /** Folders of git objects on which packs are based. */
  readonly objects?: readonly string[] | undefined;
  /** Those of this machine unless they are said. */
  readonly home?: string | undefined;
  readonly user?: string | undefined;
}

/** Looks through every file of a recorded case, and through every object in its packs. */
export async function scanForLeaks(options: LeakScanOptions): Promise<readonly Leak[]> {
  const { folder, secrets, objects = [] } = options;
  const machine = machineOf(options);
  const inFiles = createDetector({ secrets, paths: machine.paths, user: machine.user });
  // Authors of commits have names, and these cannot be changed without changing the commits.
  const inObjects = createDetector({ secrets, paths: machine.ownPaths });
  const { text: redact } = createRedactor({ paths: machine.paths, secrets });
  const leaks: Leak[] = [];
  const packs: Pack[] = [];
  for (const file of await filesIn(folder)) {
    const content = await contentOf(join(folder, file.path), file.isLink);
    const found = [...inFiles(asText(Buffer.from(file.path))).map(({ kind, name }) => ({ kind, name }))];
    if (isPack(content)) packs.push({ file: file.path, content });
    else found.push(...inFiles(asText(content)));
    leaks.push(...found.map(finding => ({ ...finding, file: redact(file.path) })));
  }
  if (packs.length === 0) return leaks;
  return [...leaks, ...(await scanPacks({ packs, objects, detect: inObjects, redact }))];
}

interface PackScan {
  readonly packs: readonly Pack[];
  readonly objects: readonly string[];
  readonly detect: Detect;
  readonly redact: (text: string) => string;
}

const scanPacks = ({ packs, objects, detect, redact }: PackScan): Promise<readonly Leak[]> =>
  withPacks({ packs, objects }, async opened => {
    const names = new ObjectNames();
    const found: (Omit<Leak, 'file'> & { readonly object: string })[] = [];
    for await (const object of opened.objects()) {
      names.add(object);
      found.push(...detect(object.bytes).map(finding => ({ ...finding, object: object.id })));
    }
    const unreadable = opened.unreadable.map(
      ({ file }): Leak => ({ kind: 'unreadable', name: 'pack', file: redact(file) }),
    );
    const leaks = found.map(async (leak): Promise<Leak> => {
      const path = names.pathOf(leak.object);
      const file = redact((await opened.fileOf(leak.object)) ?? 'a pack');
      return { ...leak, file, ...(path === undefined ? {} : { path: redact(path) }) };
    });
    return [...unreadable, ...(await Promise.all(leaks))];
  });

/** So many machines have such a user that the name says nothing, and so many texts have the word. */
const everybody = new Set(
  'root user admin administrator ubuntu debian runner node dev developer git test tester build builder ci jenkins vscode codespace app docker vagrant nobody home main guest'.split(
    ' ',
  ),
);

function machineOf({ paths = [], home = homedir(), user = userName() }: LeakScanOptions) {
  const says = user.length > 2 && !everybody.has(user);
  const homePath = { name: 'home', path: home };
  return {
    paths: [...paths, homePath],
    ownPaths: says ? [...paths, homePath] : paths,
    user: says ? user : undefined,
  };
}

function userName(): string {
  try {
    return userInfo().username;
  } catch {
    return '';
  }
}

async function filesIn(folder: string, below = ''): Promise<readonly { path: string; isLink: boolean }[]> {
  const entries = await readdir(join(folder, below), { withFileTypes: true });
  const found = entries
    .sort((a, b) => (a.name < b.name ? -1 : 1))
    .map(async entry => {
      const path = below === '' ? entry.name : `${below}/${entry.name}`;
      if (entry.isDirectory()) return filesIn(folder, path);
      return entry.isFile() || entry.isSymbolicLink() ? [{ path, isLink: entry.isSymbolicLink() }] : [];
    });
  return (await Promise.all(found)).flat();
}

/** A link is not followed: where it leads is what is recorded. */
async function contentOf(path: string, isLink: boolean): Promise<Buffer> {
  if (isLink) return Buffer.from(await readlink(path));
  const content = await readFile(path);
  if (content[0] !== 0x1f || content[1] !== 0x8b) return content;
  try {
    return gunzipSync(content);
  } catch {
    return content;
  }
}

const asText = (content: Buffer): string => content.toString('latin1');

/** So many are listed. */
const mostListed = 20;

/** What fails a recording, or a capture. */
export function leakError(leaks: readonly Leak[]): RepriseError {
  const listed = leaks.slice(0, mostListed).map(leak => `  ${describeLeak(leak)}`);
  const more = leaks.length > mostListed ? [`  and ${leaks.length - mostListed} more`] : [];
  return new RepriseError(
    'SECRET_LEAKED',
    ['the recording holds what must not leave this machine:', ...listed, ...more].join('\n'),
    { hint: leakHint(leaks) },
  );
}

export function describeLeak({ kind, name, file, line, object, path }: Leak): string {
  const place =
    object === undefined ? file : `${file} (object ${object.slice(0, 12)}${path ? `, ${path}` : ''})`;
  const where = line === undefined ? place : `${place}:${line}`;
  switch (kind) {
    case 'secret':
      return `${where}: the secret ${name}`;
    case 'path':
      return `${where}: a path of this machine (${name})`;
    case 'unreadable':
      return `${where}: a pack that cannot be looked through, because what it is based on is missing`;
  }
}

function leakHint(leaks: readonly Leak[]): string {
  if (leaks.some(({ kind }) => kind === 'secret'))
    return 'keep the secret out of what is printed and written; if these files have been shared, replace the secret';
  return 'let commands print paths that are relative to the repository, and record again';
}
