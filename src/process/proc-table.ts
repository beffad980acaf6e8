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
  const stat = read(`/proc/${pid}/stat`);
  if (stat === undefined) return undefined;
  // The second field is the program's name in parentheses, which may itself hold spaces and parentheses.
  const [state = '', parent, group, ...later] = stat.slice(stat.lastIndexOf(')') + 2).split(' ');
  const startTicks = later[16];
  return {
    pid,
    parent: Number(parent),
    group: Number(group),
    state: describeState(state),
    processStart: `${bootId()}:${startTicks}`,
  };
}

function describeState(letter: string): ProcessEntry['state'] {
  if (letter === 'Z' || letter === 'X' || letter === 'x') return 'zombie';
  return letter === 'T' ? 'stopped' : 'alive';
}

function carries(pid: number, marker: Marker): boolean {
  const environment = read(`/proc/${pid}/environ`);
  if (!environment) return false;
  const variables = new Set(environment.split('\0'));
  return Object.entries(marker).every(([name, value]) => variables.has(`${name}=${value}`));
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
