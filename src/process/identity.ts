import { readlinkSync } from 'node:fs';
import { hostname } from 'node:os';
import { type ProcessIdentity, processTable } from './process-table.ts';

/** When the process started, as a text to compare; `undefined` if there is no such process. */
export const processStart = (pid: number): string | undefined => processTable.one(pid)?.processStart;

/** Whether it still runs: the same process, not another one that was given its pid, and not a zombie. */
export function isSameProcess({ pid, processStart }: ProcessIdentity): boolean {
  // Whoever asks runs, and began when it began: looking it up each time costs more than all the rest of a lock.
  if (pid === process.pid) return processStart === thisProcess().processStart;
  const entry = processTable.one(pid);
  return entry !== undefined && entry.state !== 'zombie' && entry.processStart === processStart;
}

/** Parts of this process that were left behind as a crash would leave them. */
const abandoned = new Set<string>();

/** Who wants to know of it. */
const mourners = new Map<string, Set<() => void>>();

/** From now on nobody acts as this owner, although its process lives on. */
export function abandonIncarnation(incarnation: string): void {
  abandoned.add(incarnation);
  const told = mourners.get(incarnation);
  mourners.delete(incarnation);
  for (const mourner of told ?? []) mourner();
}

/** Calls back when the incarnation is abandoned; gives what makes it forget. */
export function onAbandoned(incarnation: string, mourner: () => void): () => void {
  const told = mourners.get(incarnation) ?? new Set();
  mourners.set(incarnation, told.add(mourner));
  return () => {
    told.delete(mourner);
    if (told.size === 0 && mourners.get(incarnation) === told) mourners.delete(incarnation);
  };
}

/** What was left behind begins anew: a performance of it is over. */
export const readmitIncarnation = (incarnation: string): void => void abandoned.delete(incarnation);

/** Whether somebody may still act as this owner, on this machine. */
export const isAlive = (owner: ProcessIdentity & { readonly incarnation: string }): boolean =>
  isSameProcess(owner) && !abandoned.has(owner.incarnation.split(':')[0] ?? '');

type ThisProcess = ProcessIdentity & { readonly host: string };

let known: ThisProcess | undefined;

/** This process, and the host on which its pid means something. */
export function thisProcess(): ThisProcess {
  known ??= { pid: process.pid, processStart: processStart(process.pid) ?? 'unknown', host: hostOfPids() };
  return known;
}

const initialNamespace = 'pid:[4026531836]';

/**
 * Containers may share a host name and not their pids. Without the namespace, the owner of a run in one of them
 * would look dead from the other.
 */
function hostOfPids(): string {
  try {
    const namespace = readlinkSync('/proc/self/ns/pid');
    return namespace === initialNamespace ? hostname() : `${hostname()} ${namespace}`;
  } catch {
    return hostname();
  }
}
