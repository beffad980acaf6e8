import { mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import type { Owner } from '../store/port.ts';
import { namesIn, parseRecord, readIfThere } from './files.ts';
import { isProvablyDead, removeIfThere, toOwner } from './lock-file.ts';

/**
 * Who waits for a lock leaves a ticket beside it, named by the moment, and lets earlier ones go first. Without tickets
 * a process that takes the lock again and again would hardly ever leave it to another that looks now and then.
 */
export function drawTicket(folder: string, owner: Owner): string {
  mkdirSync(folder, { recursive: true });
  const moment = String(process.hrtime.bigint()).padStart(20, '0');
  const ticket = `wait.${moment}.${process.pid}`;
  writeFileSync(join(folder, ticket), `${JSON.stringify(owner)}\n`);
  return ticket;
}

export const dropTicket = (folder: string, ticket: string): void => removeIfThere(join(folder, ticket));

/** Whether somebody alive has waited for longer. Tickets of the dead are swept away. */
export function othersWaitLonger(folder: string, own: string | undefined): boolean {
  const earlier = namesIn(folder).filter(
    name => name.startsWith('wait.') && (own === undefined || name < own),
  );
  return earlier.some(ticket => {
    const owner = toOwner(parseRecord(readIfThere(join(folder, ticket))));
    if (owner === undefined || !isProvablyDead(owner)) return true;
    dropTicket(folder, ticket);
    return false;
  });
}

/** Who waits, the longest first, as far as they may be alive. Nothing is swept away. */
export const waitingAt = (folder: string): readonly Owner[] =>
  namesIn(folder)
    .filter(name => name.startsWith('wait.'))
    .flatMap(ticket => toOwner(parseRecord(readIfThere(join(folder, ticket)))) ?? [])
    .filter(owner => !isProvablyDead(owner));
