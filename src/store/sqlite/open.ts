import { RepriseError } from '../../core/errors.ts';
import type { EventStore } from '../port.ts';
import { enableWriteAheadLog, openDatabase, type SqliteLocation, withStoreFailures } from './connection.ts';
import { checkVersion, latestVersion, migrate } from './migrations.ts';
import { storeOn } from './store.ts';

/**
 * Opens the store in a SQLite file, creating or migrating it unless `readonly`. Any number of processes may do so.
 * Throws STORE_NEWER and STORE_FAILED; STORE_EMPTY if it is `readonly` and nobody has written to the file yet.
 */
export async function openSqliteStore(location: SqliteLocation): Promise<EventStore> {
  const { file, readonly = false } = location;
  const db = await openDatabase(location);
  try {
    return withStoreFailures(file, () => {
      const version = checkVersion(db, file);
      if (!readonly) {
        enableWriteAheadLog(db);
        migrate(db, file);
      } else if (version < latestVersion) {
        throw tooOld(file, version);
      }
      return storeOn(db, file);
    });
  } catch (thrown) {
    db.close();
    throw thrown;
  }
}

const tooOld = (file: string, version: number) =>
  version === 0
    ? stillEmpty(file)
    : new RepriseError(
        'STORE_FAILED',
        `the store ${file} has version ${version} and cannot be migrated read-only`,
        {
          hint: 'open it for writing once, which brings it to the latest version',
        },
      );

const stillEmpty = (file: string) =>
  new RepriseError('STORE_EMPTY', `there is nothing in the store ${file} yet`, {
    hint: 'whoever makes it is not done: try again',
  });
