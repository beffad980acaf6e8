import { readdir, readFile, readlink } from 'node:fs/promises';
import { homedir, userInfo } from 'node:os';
import { join } from 'node:path';
import { gunzipSync } from 'node:zlib';
import { RepriseError } from '../../core/index.ts';
import { createRedactor, type NamedPath, type Secret, type SecretMarks } from '../../effects/redact/index.ts';
import {
  createDetector,
  type Detect,
  isPack,
  ObjectNames,
  type Pack,
  searchForTokens,
  userNameLeak,
  withPacks,
} from './leak-detectors.ts';

/** A secret or path in a recorded file. Never contains its value. */
export interface Leak {
  /** `unreadable`: a pack that could not be searched, because its base objects are missing. */
  readonly kind: 'secret' | 'path' | 'unreadable';
  /** Name of the variable, of the kind of token, or of the path. */
  readonly name: string;
  /** Path of the recorded file, relative to the scanned folder. */
  readonly file: string;
  readonly line?: number | undefined;
  /** Id of the git object, for a leak in a pack. */
  readonly object?: string | undefined;
  /** Path of the git object. */
  readonly path?: string | undefined;
}

export interface LeakScanOptions {
  /** Folder of the finished recording. */
  readonly folder: string;
  readonly secrets: readonly Secret[];
  /** Marks of the secrets that a journal knew. */
  readonly marks?: readonly SecretMarks[] | undefined;
  /** Local paths, in addition to the home folder. */
  readonly paths?: readonly NamedPath[] | undefined;
  /** Folders of git objects that packs are based on. */
  readonly objects?: readonly string[] | undefined;
  /** Home folder. Defaults to that of the current user. */
  readonly home?: string | undefined;
  /** User name. Defaults to the current user. */
  readonly user?: string | undefined;
}

/** Searches every file of a recording, and every object in its packs. */
export async function scanForLeaks(options: LeakScanOptions): Promise<readonly Leak[]> {
  const { folder, secrets, marks, objects = [] } = options;
  const machine = machineOf(options);
  const tokens = await searchForTokens();
  const inFiles = createDetector({ secrets, marks, tokens, paths: machine.paths, user: machine.user });
  // Objects are not searched for the user name: commits name their authors, and cannot be redacted.
  const inObjects = createDetector({ secrets, marks, tokens, paths: machine.ownPaths });
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

/** Common user names, which identify no one and occur as ordinary words. */
const sharedUserNames = new Set(
  'root user admin administrator ubuntu debian runner node dev developer git test tester build builder ci jenkins vscode codespace app docker vagrant nobody home main guest'.split(
    ' ',
  ),
);

function machineOf({ paths = [], home = homedir(), user = userName() }: LeakScanOptions) {
  const isIdentifying = user.length > 2 && !sharedUserNames.has(user);
  const homePath = { name: 'home', path: home };
  return {
    paths: [...paths, homePath],
    ownPaths: isIdentifying ? [...paths, homePath] : paths,
    user: isIdentifying ? user : undefined,
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

/** Returns the target of a link, and the content of a file, uncompressed if it is gzipped. */
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

const maxListed = 20;

/** Returns the error that fails a recording or a capture. */
export function leakError(leaks: readonly Leak[]): RepriseError {
  const listed = leaks.slice(0, maxListed).map(leak => `  ${describeLeak(leak)}`);
  const more = leaks.length > maxListed ? [`  and ${leaks.length - maxListed} more`] : [];
  return new RepriseError(
    'SECRET_LEAKED',
    ['the recording contains secrets or local paths:', ...listed, ...more].join('\n'),
    { hint: leakHint(leaks) },
  );
}

export function describeLeak({ kind, name, file, line, object, path }: Leak): string {
  const place =
    object === undefined ? file : `${file} (object ${object.slice(0, 12)}${path ? `, ${path}` : ''})`;
  const where = line === undefined ? place : `${place}:${line}`;
  switch (kind) {
    case 'secret':
      return `${where}: secret ${name}`;
    case 'path':
      return name === userNameLeak ? `${where}: your user name` : `${where}: local path (${name})`;
    case 'unreadable':
      return `${where}: git pack that cannot be searched, because the objects it is based on are missing`;
  }
}

function leakHint(leaks: readonly Leak[]): string {
  if (leaks.some(({ kind }) => kind === 'secret'))
    return 'keep the secret out of the files and the output of agents and scripts, and try again; if these files have been shared, revoke the secret';
  return 'make agents and scripts print paths relative to the repository, and try again';
}
