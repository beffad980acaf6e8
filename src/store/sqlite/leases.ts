import type { Timestamp } from '../../core/time.ts';
import type { Lease, Owner, RunStatus } from '../port.ts';
import type { Database } from './connection.ts';

/** Who owns a run: columns of its row. Every statement but `grant` names the lease, so that it does nothing once it is lost. */
export function leasesTable(db: Database) {
  const grant = db.prepare(
    `UPDATE runs SET epoch = epoch + 1, incarnation = ?, host = ?, pid = ?, process_start = ?, expires_at = ?
     WHERE run_id = ? RETURNING epoch`,
  );
  const renew = db.prepare(
    'UPDATE runs SET expires_at = ? WHERE run_id = ? AND epoch = ? AND incarnation = ?',
  );
  const release = db.prepare(
    `UPDATE runs SET status = coalesce(?, status), incarnation = NULL, host = NULL, pid = NULL, process_start = NULL, expires_at = NULL
     WHERE run_id = ? AND epoch = ? AND incarnation = ?`,
  );

  const find = db.prepare('SELECT 1 FROM runs WHERE run_id = ? AND epoch = ? AND incarnation = ?');

  return {
    /** The caller has made sure that nobody holds the run. */
    grant(runId: string, owner: Owner, expiresAt: Timestamp): Lease {
      const { incarnation, host, pid, processStart } = owner;
      const row: { epoch: number } = grant.get(incarnation, host, pid, processStart, expiresAt, runId);
      return { epoch: row.epoch, incarnation };
    },

    /** `false` if the lease is lost. */
    renew: (runId: string, { epoch, incarnation }: Lease, expiresAt: Timestamp): boolean =>
      renew.run(expiresAt, runId, epoch, incarnation).changes === 1,

    release(runId: string, { epoch, incarnation }: Lease, status?: RunStatus): void {
      release.run(status ?? null, runId, epoch, incarnation);
    },

    holds: (runId: string, { epoch, incarnation }: Lease): boolean =>
      find.get(runId, epoch, incarnation) !== undefined,
  };
}
