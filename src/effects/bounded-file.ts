import { closeSync, constants, fstatSync, openSync, readSync, type Stats } from 'node:fs';
import { RepriseError } from '../core/index.ts';

const megabyte = 1024 * 1024;

/** Largest sizes of files, in bytes. A file is measured before it is read. */
export const fileLimits = {
  /** A workflow, the settings, an agent, a prompt or a script. Its parser takes seconds for this size. */
  definition: megabyte,
  /** A case file, which may contain the files of a repository. */
  caseFile: 10 * megabyte,
  /** Inputs, as a file or on standard input. */
  input: 10 * megabyte,
  /** A tape, a score, a session or a snapshot. */
  recording: 100 * megabyte,
  /** A journal, or a part of one. JavaScript has no larger strings than 512 MB. */
  journal: 256 * megabyte,
  /** A pack or a blob of a recording. */
  blob: 1024 * megabyte,
} as const;

interface BoundedRead {
  readonly maxBytes: number;
  /** Also reads a pipe or a device, up to the limit. For paths of a user, such as `<(command)`. */
  readonly pipes?: boolean | undefined;
}

/** A file that is too large or not a regular file. The message is the rest of a sentence that begins with its path. */
export class FileRefusedError extends Error {
  override readonly name: string = 'FileRefusedError';
}

/**
 * Reads a regular file of limited size. A FIFO is not waited for, and a device such as `/dev/zero` is not read.
 * Throws FileRefusedError, or the error of the system.
 */
export function readBoundedFile(file: string, { maxBytes, pipes = false }: BoundedRead): Buffer {
  // Without this flag, opening a FIFO waits until another process writes to it.
  const descriptor = openSync(file, constants.O_RDONLY | (pipes ? 0 : constants.O_NONBLOCK));
  try {
    const stats = fstatSync(descriptor);
    if (stats.isFile() && stats.size > maxBytes) throw tooLarge(maxBytes, stats.size);
    if (!stats.isFile() && !pipes) throw new FileRefusedError(`is ${kindOf(stats)}, not a regular file`);
    return readUpTo(descriptor, maxBytes);
  } finally {
    closeSync(descriptor);
  }
}

/** The same, decoded as UTF-8. */
export const readBoundedText = (file: string, options: BoundedRead): string =>
  readBoundedFile(file, options).toString('utf8');

interface RecordedFile {
  readonly file: string;
  /** Path for messages. Defaults to `file`. */
  readonly displayFile?: string | undefined;
  /** Defaults to the limit of a recording. */
  readonly maxBytes?: number | undefined;
}

/** Reads a file of a recording. Throws TAPE_INVALID if it is too large or not a regular file. */
export function readRecordedFile({ file, displayFile, maxBytes }: RecordedFile): Buffer {
  try {
    return readBoundedFile(file, { maxBytes: maxBytes ?? fileLimits.recording });
  } catch (error) {
    if (!(error instanceof FileRefusedError)) throw error;
    throw new RepriseError('TAPE_INVALID', `${displayFile ?? file} ${error.message}`, {
      hint: 'restore the file from version control, or record the case again',
      cause: error,
    });
  }
}

/** The same, decoded as UTF-8. */
export const readRecordedText = (file: RecordedFile): string => readRecordedFile(file).toString('utf8');

/** A file may grow while it is read, and the size of a pipe is not known. */
function readUpTo(descriptor: number, maxBytes: number): Buffer {
  const chunks: Buffer[] = [];
  let total = 0;
  for (;;) {
    const chunk = Buffer.allocUnsafe(Math.min(megabyte, maxBytes + 1 - total));
    const count = readSync(descriptor, chunk);
    if (count === 0) return Buffer.concat(chunks, total);
    chunks.push(chunk.subarray(0, count));
    total += count;
    if (total > maxBytes) throw tooLarge(maxBytes);
  }
}

export const tooLarge = (maxBytes: number, size?: number): FileRefusedError =>
  new FileRefusedError(
    `is larger than ${megabytes(maxBytes)}${size === undefined ? '' : ` (${megabytes(size)})`}`,
  );

/** Rounded up, so that a size above a limit never looks equal to it. */
const megabytes = (bytes: number): string => `${Math.ceil((bytes / megabyte) * 10) / 10} MB`;

function kindOf(stats: Stats): string {
  if (stats.isDirectory()) return 'a folder';
  if (stats.isFIFO()) return 'a FIFO';
  if (stats.isSocket()) return 'a socket';
  return 'a device';
}
