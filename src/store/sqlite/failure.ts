import { RepriseError } from '../../core/errors.ts';

type Trouble = 'full' | 'readonly' | 'locked' | 'damaged' | 'unopenable' | 'io' | 'other';

/** The primary result code of SQLite, and its text: the driver leaves the code out of some errors. */
const troubles: readonly { readonly code: number; readonly text: string; readonly trouble: Trouble }[] = [
  { code: 3, text: 'access permission denied', trouble: 'readonly' },
  { code: 5, text: 'database is locked', trouble: 'locked' },
  { code: 6, text: 'database table is locked', trouble: 'locked' },
  { code: 8, text: 'attempt to write a readonly database', trouble: 'readonly' },
  { code: 10, text: 'disk I/O error', trouble: 'io' },
  { code: 11, text: 'database disk image is malformed', trouble: 'damaged' },
  { code: 13, text: 'database or disk is full', trouble: 'full' },
  { code: 14, text: 'unable to open database file', trouble: 'unopenable' },
  { code: 26, text: 'file is not a database', trouble: 'damaged' },
];

const isSqliteError = (thrown: unknown): thrown is Error & { readonly errcode?: unknown } =>
  thrown instanceof Error && 'code' in thrown && thrown.code === 'ERR_SQLITE_ERROR';

function troubleOf(thrown: Error & { readonly errcode?: unknown }): Trouble {
  const { errcode, message } = thrown;
  const known = troubles.find(({ code, text }) =>
    // The low byte of an extended code is the primary one.
    typeof errcode === 'number' ? (errcode & 0xff) === code : message.includes(text),
  );
  return known?.trouble ?? 'other';
}

export const isLocked = (thrown: unknown): boolean => isSqliteError(thrown) && troubleOf(thrown) === 'locked';

/** Turns what SQLite threw into STORE_FAILED with a hint that fits; anything else passes through. */
export function toStoreFailure(file: string, thrown: unknown): unknown {
  if (!isSqliteError(thrown)) return thrown;
  const { what, hint } = explain(troubleOf(thrown));
  return new RepriseError('STORE_FAILED', `the store ${file} ${what}: ${thrown.message}`, {
    hint,
    cause: thrown,
  });
}

function explain(trouble: Trouble): { readonly what: string; readonly hint: string } {
  switch (trouble) {
    case 'full':
      return {
        what: 'cannot grow',
        hint: 'the disk is full: free some space, then resume the run; all that was recorded is safe',
      };
    case 'readonly':
      return {
        what: 'cannot be written',
        hint: 'it is read-only: check the permissions of the file and of its folder',
      };
    case 'locked':
      return {
        what: 'is locked',
        hint: 'another process has been writing to it for too long: wait for that one or end it, then try again',
      };
    case 'damaged':
      return {
        what: 'is damaged',
        hint: 'keep a copy and restore it from a backup, or move it away to start with an empty one',
      };
    case 'unopenable':
      return {
        what: 'cannot be opened',
        hint: 'check that the path is a file, that its folder exists and that both may be written to',
      };
    case 'io':
      return {
        what: 'could not be read or written',
        hint: 'the disk reports an error: check its health and the free space',
      };
    case 'other':
      return { what: 'failed', hint: 'this may be a bug in Reprise: report it with the message above' };
  }
}
