import { createHash } from 'node:crypto';

/** What the index of a worktree says, read without a process. */
export interface IndexFile {
  readonly entries: readonly IndexEntry[];
  /** The tree that it stands for, if git has noted it there and nothing was staged since. */
  readonly tree: string | undefined;
  /** Most entries are in another file. */
  readonly isSplit: boolean;
  /** Whole folders are one entry. */
  readonly isSparse: boolean;
}

export interface IndexEntry {
  readonly path: string;
  readonly isGitlink: boolean;
  readonly isUnmerged: boolean;
  readonly isIntentToAdd: boolean;
  readonly isAssumedUnchanged: boolean;
  readonly isSkipped: boolean;
  /** Where in the file it begins. */
  readonly at: number;
  /** Where its flags are. */
  readonly flagsAt: number;
}

const headerBytes = 12;
const statBytes = 40;
const field = { changed: 0, modified: 8, mode: 24, size: 36 } as const;
const flag = { assumeUnchanged: 0x8000, extended: 0x4000, stages: 0x3000 } as const;
const extendedFlag = { skipWorktree: 0x4000, intentToAdd: 0x2000 } as const;
const gitlinkMode = 0o160000;

export const noIndex: IndexFile = { entries: [], tree: undefined, isSplit: false, isSparse: false };

/** Versions 2 to 4 of the format; `undefined` for any other. */
export function parseIndex(bytes: Buffer, oidBytes: number): IndexFile | undefined {
  const version = bytes.length < headerBytes ? 0 : bytes.readUInt32BE(4);
  if (bytes.toString('latin1', 0, 4) !== 'DIRC' || version < 2 || version > 4) return undefined;
  const count = bytes.readUInt32BE(8);
  const entries: IndexEntry[] = [];
  let at = headerBytes;
  let name: Buffer = Buffer.alloc(0);
  for (let i = 0; i < count; i++) {
    const start = at;
    const flagsAt = start + statBytes + oidBytes;
    const flags = bytes.readUInt16BE(flagsAt);
    const isExtended = (flags & flag.extended) !== 0;
    const extended = isExtended ? bytes.readUInt16BE(flagsAt + 2) : 0;
    const nameAt = flagsAt + (isExtended ? 4 : 2);
    if (version === 4) {
      const { value, end } = readOffset(bytes, nameAt);
      const nul = bytes.indexOf(0, end);
      name = Buffer.concat([name.subarray(0, name.length - value), bytes.subarray(end, nul)]);
      at = nul + 1;
    } else {
      const nul = bytes.indexOf(0, nameAt);
      name = bytes.subarray(nameAt, nul);
      // Entries are padded with one to eight zeros.
      at += (nul - at + 8) & ~7;
    }
    entries.push({
      path: name.toString(),
      isGitlink: (bytes.readUInt32BE(start + field.mode) & 0o170000) === gitlinkMode,
      isUnmerged: (flags & flag.stages) !== 0,
      isIntentToAdd: (extended & extendedFlag.intentToAdd) !== 0,
      isAssumedUnchanged: (flags & flag.assumeUnchanged) !== 0,
      isSkipped: (extended & extendedFlag.skipWorktree) !== 0,
      at: start,
      flagsAt,
    });
  }
  return { entries, ...parseExtensions(bytes.subarray(at, bytes.length - oidBytes), oidBytes) };
}

/** The number of bytes that a name does not share with the one before, as git packs it. */
function readOffset(bytes: Buffer, start: number): { value: number; end: number } {
  let at = start;
  let byte = bytes.readUInt8(at++);
  let value = byte & 0x7f;
  while (byte & 0x80) {
    byte = bytes.readUInt8(at++);
    value = ((value + 1) << 7) | (byte & 0x7f);
  }
  return { value, end: at };
}

function parseExtensions(bytes: Buffer, oidBytes: number): Omit<IndexFile, 'entries'> {
  let tree: string | undefined;
  const names = new Set<string>();
  for (let at = 0; at + 8 <= bytes.length; at += 8 + bytes.readUInt32BE(at + 4)) {
    const name = bytes.toString('latin1', at, at + 4);
    names.add(name);
    if (name === 'TREE')
      tree = rootTree(bytes.subarray(at + 8, at + 8 + bytes.readUInt32BE(at + 4)), oidBytes);
  }
  return { tree, isSplit: names.has('link'), isSparse: names.has('sdir') };
}

/** The first entry of the noted trees is that of the top; it has a count of -1 when something below has changed. */
function rootTree(bytes: Buffer, oidBytes: number): string | undefined {
  const pathEnd = bytes.indexOf(0);
  const lineEnd = bytes.indexOf('\n', pathEnd);
  if (pathEnd !== 0 || lineEnd === -1) return undefined;
  const isValid = /^\d+ \d+$/.test(bytes.toString('latin1', 1, lineEnd));
  return isValid ? bytes.toString('hex', lineEnd + 1, lineEnd + 1 + oidBytes) : undefined;
}

/** What git noted about a file when it last looked at it. Times are in nanoseconds. */
export interface NotedFile {
  readonly changed: bigint;
  readonly modified: bigint;
  readonly mode: number;
  readonly size: number;
  readonly id: string;
}

export function notedFile(bytes: Buffer, { at, flagsAt }: IndexEntry): NotedFile {
  const time = (start: number) =>
    BigInt(bytes.readUInt32BE(start)) * 1_000_000_000n + BigInt(bytes.readUInt32BE(start + 4));
  return {
    changed: time(at + field.changed),
    modified: time(at + field.modified),
    mode: bytes.readUInt32BE(at + field.mode),
    size: bytes.readUInt32BE(at + field.size),
    id: bytes.toString('hex', at + statBytes, flagsAt),
  };
}

/** The second in which a file was modified, which is how far git itself looks. */
export const notedSecond = (bytes: Buffer, { at }: IndexEntry): number =>
  bytes.readUInt32BE(at + field.modified);

export interface IndexEdits {
  /** Files that git looks at from now on whatever it was told before. */
  readonly show: readonly IndexEntry[];
  /** Files of which git forgets that it has seen them. */
  readonly forget: readonly IndexEntry[];
}

export function editIndex(bytes: Buffer, { show, forget }: IndexEdits, oidBytes: number): Buffer {
  if (show.length === 0 && forget.length === 0) return bytes;
  const copy = Buffer.from(bytes);
  for (const { flagsAt } of show) {
    const flags = copy.readUInt16BE(flagsAt);
    copy.writeUInt16BE(flags & ~flag.assumeUnchanged, flagsAt);
    if (flags & flag.extended)
      copy.writeUInt16BE(copy.readUInt16BE(flagsAt + 2) & ~extendedFlag.skipWorktree, flagsAt + 2);
  }
  for (const { at } of forget) copy.writeUInt32BE(0, at + field.modified);
  const end = copy.length - oidBytes;
  createHash(oidBytes === 20 ? 'sha1' : 'sha256')
    .update(copy.subarray(0, end))
    .digest()
    .copy(copy, end);
  return copy;
}
