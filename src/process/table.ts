import { spawnSync } from 'node:child_process';
import { existsSync, readdirSync, readFileSync, readlinkSync } from 'node:fs';
import { hostname } from 'node:os';

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

const columns = 'pid=,ppid=,pgid=,stat=,lstart=';

/** Systems without `/proc`: what `ps` prints. Start times are whole seconds, and the environment is a best effort. */
export const psTable: ProcessTable = {
  all: () => ps(['-A', '-o', columns]).flatMap(line => parseEntry(line) ?? []),
  one: pid => ps(['-o', columns, '-p', String(pid)]).flatMap(line => parseEntry(line) ?? [])[0],
  marked: (entries, marker) => {
    const pids = new Set(ps(['axeww', '-o', 'pid=,command=']).flatMap(line => markedPid(line, marker) ?? []));
    return entries.filter(({ pid }) => pids.has(pid));
  },
  // One `ps` shows the environment of all.
  startedBefore: () => false,
};

function ps(args: readonly string[]): string[] {
  // A start time is compared as a text, so that it must not depend on the language or the zone of whoever asks.
  const env = { PATH: process.env['PATH'] ?? '/usr/bin:/bin', LC_ALL: 'C', TZ: 'UTC' };
  const { stdout } = spawnSync('ps', args, { env, encoding: 'utf8', maxBuffer: 256 * 1024 * 1024 });
  return stdout ? stdout.split('\n') : [];
}

function parseEntry(line: string): ProcessEntry | undefined {
  const [, pid, parent, group, state = '', start] =
    /^\s*(\d+)\s+(\d+)\s+(\d+)\s+(\S+)\s+(.+?)\s*$/.exec(line) ?? [];
  if (start === undefined) return undefined;
  return {
    pid: Number(pid),
    parent: Number(parent),
    group: Number(group),
    state: state.startsWith('Z') ? 'zombie' : state.startsWith('T') ? 'stopped' : 'alive',
    processStart: `ps:${start}`,
  };
}

/** The environment follows the command in one line of text, where values are not quoted. */
function markedPid(line: string, marker: Marker): number | undefined {
  const padded = `${line} `;
  const all = Object.entries(marker).every(([name, value]) => padded.includes(` ${name}=${value} `));
  return all ? Number.parseInt(line, 10) : undefined;
}

/** Names a process for ever: a pid alone is given again to another process. */
export interface ProcessIdentity {
  readonly pid: number;
  /** When it started, as a text that means nothing else than being equal or not. */
  readonly processStart: string;
}

/** One process at the moment of looking. */
export interface ProcessEntry extends ProcessIdentity {
  readonly parent: number;
  readonly group: number;
  /** A zombie has ended; only its parent has not asked for its exit code yet. */
  readonly state: 'alive' | 'stopped' | 'zombie';
}

/** Environment variables that a process must all have to be found by them. */
export type Marker = Readonly<Record<string, string>>;

/** The processes of this machine. Looking never throws: what cannot be seen is left out. */
export interface ProcessTable {
  all(): readonly ProcessEntry[];
  one(pid: number): ProcessEntry | undefined;
  /** Those among `entries` whose environment, as it was when they started, has the whole marker. */
  marked(entries: readonly ProcessEntry[], marker: Marker): readonly ProcessEntry[];
  /** Whether one certainly started before the other, and so cannot come from it. `false` also if nobody can tell. */
  startedBefore(one: ProcessIdentity, other: ProcessIdentity): boolean;
}

/** The table of this machine: `/proc` where there is one, otherwise `ps`. */
export const processTable: ProcessTable = existsSync('/proc/self/stat') ? procTable : psTable;

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
const abandonListeners = new Map<string, Set<() => void>>();

/** From now on nobody acts as this owner, although its process lives on. */
export function abandonIncarnation(incarnation: string): void {
  abandoned.add(incarnation);
  const listeners = abandonListeners.get(incarnation);
  abandonListeners.delete(incarnation);
  for (const listener of listeners ?? []) listener();
}

/** Calls back when the incarnation is abandoned; gives what makes it forget. */
export function onAbandoned(incarnation: string, listener: () => void): () => void {
  const listeners = abandonListeners.get(incarnation) ?? new Set();
  abandonListeners.set(incarnation, listeners.add(listener));
  return () => {
    listeners.delete(listener);
    if (listeners.size === 0 && abandonListeners.get(incarnation) === listeners)
      abandonListeners.delete(incarnation);
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
