import { readdirSync, readFileSync } from 'node:fs';
import type { Marker, ProcessEntry, ProcessIdentity, ProcessTable } from './process-table.ts';

/** Linux: one scan of `/proc`, without starting a process. */
export const procTable: ProcessTable = {
  all: () => pids().flatMap(pid => readEntry(pid) ?? []),
  one: readEntry,
  marked: (entries, marker) => entries.filter(({ pid }) => carries(pid, marker)),
  startedBefore: (one, other) => {
    const [ticks, others] = [ticksOf(one), ticksOf(other)];
    return ticks !== undefined && others !== undefined && ticks < others;
  },
};

const pids = (): number[] => readdirSync('/proc').flatMap(name => (/^\d+$/.test(name) ? Number(name) : []));

function readEntry(pid: number): ProcessEntry | undefined {
  const fields = readStat(pid);
  if (fields === undefined) return undefined;
  const [state = '', parent, group] = fields;
  const startTicks = fields[19];
  return {
    pid,
    parent: Number(parent),
    group: Number(group),
    state: describeState(state),
    processStart: `${bootId()}:${startTicks}`,
  };
}

/** The fields after the program's name, which is in parentheses and may itself hold spaces and parentheses. */
function readStat(pid: number): string[] | undefined {
  const stat = read(`/proc/${pid}/stat`);
  return stat?.slice(stat.lastIndexOf(')') + 2).split(' ');
}

function describeState(letter: string): ProcessEntry['state'] {
  if (letter === 'Z' || letter === 'X' || letter === 'x') return 'zombie';
  return letter === 'T' ? 'stopped' : 'alive';
}

function carries(pid: number, marker: Marker): boolean {
  const environment = environmentOf(pid);
  if (environment === undefined) return false;
  const variables = new Set(environment.split('\0'));
  return Object.entries(marker).every(([name, value]) => variables.has(`${name}=${value}`));
}

/**
 * A process that becomes another program has left its old environment and not yet made the new one, so nothing is no
 * answer: it is asked again, some 2,000 times at most, which takes 50 ms, and 40 times if it seems to have been
 * started without any.
 */
function environmentOf(pid: number): string | undefined {
  for (let patience = 2000; patience > 0; ) {
    const environment = read(`/proc/${pid}/environ`);
    if (environment !== '') return environment;
    const { hasNone, seemsEmpty } = readSpace(pid);
    if (hasNone) return undefined;
    patience -= seemsEmpty ? 50 : 1;
  }
  return undefined;
}

const kernelThread = 0x20_00_00;

/** Where its environment would be. */
function readSpace(pid: number): { hasNone: boolean; seemsEmpty: boolean } {
  const fields = readStat(pid);
  const isKernels = (Number(fields?.[6]) & kernelThread) !== 0;
  const [start, end] = [fields?.[47], fields?.[48]];
  return {
    hasNone: fields === undefined || isKernels || describeState(fields[0] ?? '') === 'zombie',
    seemsEmpty: start === end && end !== '0',
  };
}

/** `undefined` if it is of another boot, or was never known. */
function ticksOf({ processStart }: ProcessIdentity): number | undefined {
  const prefix = `${bootId()}:`;
  const ticks = processStart.startsWith(prefix) ? processStart.slice(prefix.length) : '';
  return /^\d+$/.test(ticks) ? Number(ticks) : undefined;
}

let knownBootId: string | undefined;

/** Ticks count from the start of the machine, so that they say nothing about another boot. */
function bootId(): string {
  knownBootId ??= read('/proc/sys/kernel/random/boot_id')?.trim() ?? 'boot';
  return knownBootId;
}

/** `undefined`: it ended in the meantime, or belongs to somebody else. */
function read(file: string): string | undefined {
  try {
    return readFileSync(file, 'utf8');
  } catch {
    return undefined;
  }
}
