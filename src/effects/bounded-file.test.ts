import { execFileSync } from 'node:child_process';
import { mkdtempSync, rmSync, symlinkSync, truncateSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { describe, expect, it, onTestFinished } from 'vitest';
import { readBoundedFile, readBoundedText, readRecordedText } from './bounded-file.ts';

function temporaryFile(name = 'file'): string {
  const folder = mkdtempSync(join(tmpdir(), 'reprise-bounded-'));
  onTestFinished(() => rmSync(folder, { recursive: true, force: true }));
  return join(folder, name);
}

const megabyte = 1024 * 1024;

describe('a bounded file', () => {
  it('is read up to its limit, also through a link', () => {
    const file = temporaryFile();
    writeFileSync(file, 'é'.repeat(megabyte));
    symlinkSync(file, `${file}.link`);
    expect(readBoundedText(`${file}.link`, { maxBytes: 2 * megabyte })).toBe('é'.repeat(megabyte));
    expect(readBoundedFile(file, { maxBytes: 2 * megabyte })).toHaveLength(2 * megabyte);
  });

  it('is refused by its size before it is read', () => {
    const file = temporaryFile();
    writeFileSync(file, '');
    // A hole: no memory could hold it.
    truncateSync(file, 2 ** 40);
    expect(() => readBoundedFile(file, { maxBytes: megabyte })).toThrow('is larger than 1 MB (1048576 MB)');
    truncateSync(file, megabyte + 1);
    expect(() => readBoundedFile(file, { maxBytes: megabyte })).toThrow('is larger than 1 MB (1.1 MB)');
  });

  it('must be a regular file', () => {
    const fifo = temporaryFile('fifo');
    execFileSync('mkfifo', [fifo]);
    const link = temporaryFile('link');
    symlinkSync('/dev/zero', link);
    const read = (file: string) => () => readBoundedFile(file, { maxBytes: megabyte });
    expect(read(fifo)).toThrow('is a FIFO, not a regular file');
    expect(read(link)).toThrow('is a device, not a regular file');
    expect(read(tmpdir())).toThrow('is a folder, not a regular file');
  });

  it('may be a pipe or a device if a user names it, up to the limit', () => {
    expect(readBoundedText('/dev/null', { maxBytes: megabyte, pipes: true })).toBe('');
    expect(() => readBoundedFile('/dev/zero', { maxBytes: 3 * megabyte, pipes: true })).toThrow(
      'is larger than 3 MB',
    );
  });
});

it('a file of a recording is named in the error', () => {
  const link = temporaryFile('a.vcr');
  symlinkSync('/dev/zero', link);
  expect(() => readRecordedText({ file: link, displayFile: 'cases/a/a.vcr' })).toThrowError(
    expect.objectContaining({
      code: 'TAPE_INVALID',
      message: 'cases/a/a.vcr is a device, not a regular file',
    }),
  );
});
