import { spawnSync } from 'node:child_process';
import { existsSync, readdirSync, readFileSync, readlinkSync } from 'node:fs';
import { hostname } from 'node:os';

/** Process table on Linux: one scan of `/proc`, without starting a process. */
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

/** Fields after the program's name, which is in parentheses and may itself contain spaces and parentheses. */
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
 * A process in the middle of `exec` has no environment for a moment, so an empty one is read again: at most 2,000 times,
 * which takes 50 ms, or 40 times if the process seems to have been started with an empty environment.
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

/** State of the memory that holds the environment. */
function readSpace(pid: number): { hasNone: boolean; seemsEmpty: boolean } {
  const fields = readStat(pid);
  const isKernelThread = (Number(fields?.[6]) & kernelThread) !== 0;
  const [start, end] = [fields?.[47], fields?.[48]];
  return {
    hasNone: fields === undefined || isKernelThread || describeState(fields[0] ?? '') === 'zombie',
    seemsEmpty: start === end && end !== '0',
  };
}

/** Start time in clock ticks; `undefined` if it belongs to another boot or is unknown. */
function ticksOf({ processStart }: ProcessIdentity): number | undefined {
  const prefix = `${bootId()}:`;
  const ticks = processStart.startsWith(prefix) ? processStart.slice(prefix.length) : '';
  return /^\d+$/.test(ticks) ? Number(ticks) : undefined;
}

let knownBootId: string | undefined;

/** Id of this boot. Ticks count from the boot, so they cannot be compared across boots. */
function bootId(): string {
  knownBootId ??= read('/proc/sys/kernel/random/boot_id')?.trim() ?? 'boot';
  return knownBootId;
}

/** Content of a file of `/proc`; `undefined` if the process has ended or belongs to another user. */
function read(file: string): string | undefined {
  try {
    return readFileSync(file, 'utf8');
  } catch {
    return undefined;
  }
}

/**
 * Live processes of a program, by identity, with their working directory; `undefined` if that belongs to another user.
 * Without `/proc`, no directory is known.
 */
export function processesNamed(name: string): ReadonlyMap<string, string | undefined> {
  if (processTable === psTable) {
    const lines = ps(['-A', '-o', 'pid=,lstart=,comm=']).filter(
      line => line.endsWith(`/${name}`) || line.endsWith(` ${name}`),
    );
    return new Map(lines.map(line => [line.trim(), undefined]));
  }
  const found = pids().filter(pid => read(`/proc/${pid}/comm`)?.trim() === name);
  return new Map(
    found.flatMap(pid => {
      const entry = readEntry(pid);
      return entry === undefined || entry.state === 'zombie'
        ? []
        : [[`${pid} ${entry.processStart}`, folderOf(pid)] as const];
    }),
  );
}

function folderOf(pid: number): string | undefined {
  try {
    return readlinkSync(`/proc/${pid}/cwd`);
  } catch {
    return undefined;
  }
}

const columns = 'pid=,ppid=,pgid=,stat=,lstart=';

/** Process table by `ps`, for systems without `/proc`. Start times are whole seconds; the environment is best effort. */
export const psTable: ProcessTable = {
  all: () => ps(['-A', '-o', columns]).flatMap(line => parseEntry(line) ?? []),
  one: pid => ps(['-o', columns, '-p', String(pid)]).flatMap(line => parseEntry(line) ?? [])[0],
  marked: (entries, marker) => {
    const pids = new Set(ps(['axeww', '-o', 'pid=,command=']).flatMap(line => markedPid(line, marker) ?? []));
    return entries.filter(({ pid }) => pids.has(pid));
  },
  // One call to `ps` shows all environments, so there is no need to exclude older processes.
  startedBefore: () => false,
};

function ps(args: readonly string[]): string[] {
  // Start times are compared as text, so they must not depend on the locale or time zone of the caller.
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

/** Pid of a line with the marker. The environment follows the command, and its values are not quoted. */
function markedPid(line: string, marker: Marker): number | undefined {
  const padded = `${line} `;
  const all = Object.entries(marker).every(([name, value]) => padded.includes(` ${name}=${value} `));
  return all ? Number.parseInt(line, 10) : undefined;
}

/** Unique identity of a process. A pid alone is not unique, because the system reuses pids. */
export interface ProcessIdentity {
  readonly pid: number;
  /** Start time as opaque text, to be compared for equality only. */
  readonly processStart: string;
}

/** Snapshot of one process. */
export interface ProcessEntry extends ProcessIdentity {
  readonly parent: number;
  readonly group: number;
  /** A zombie has ended, but its parent has not read its exit code yet. */
  readonly state: 'alive' | 'stopped' | 'zombie';
}

/** Environment variables by which a process is found. It must have all of them. */
export type Marker = Readonly<Record<string, string>>;

/** Processes of this machine. Reading never throws: processes that cannot be inspected are omitted. */
export interface ProcessTable {
  all(): readonly ProcessEntry[];
  one(pid: number): ProcessEntry | undefined;
  /** Returns the entries whose initial environment has the whole marker. */
  marked(entries: readonly ProcessEntry[], marker: Marker): readonly ProcessEntry[];
  /** Whether one certainly started before the other, and so cannot descend from it. `false` if that is unknown. */
  startedBefore(one: ProcessIdentity, other: ProcessIdentity): boolean;
}

/** Process table of this machine: `/proc` if it exists, otherwise `ps`. */
export const processTable: ProcessTable = existsSync('/proc/self/stat') ? procTable : psTable;

/** Start time of a process as opaque text; `undefined` if there is no such process. */
export const processStart = (pid: number): string | undefined => processTable.one(pid)?.processStart;

/** Whether the process still runs. `false` for a zombie, and if another process has its pid now. */
export function isSameProcess({ pid, processStart }: ProcessIdentity): boolean {
  // This process certainly runs. Looking it up each time would cost more than everything else that a lock does.
  if (pid === process.pid) return processStart === thisProcess().processStart;
  const entry = processTable.one(pid);
  return entry !== undefined && entry.state !== 'zombie' && entry.processStart === processStart;
}

/** Incarnations that were abandoned in this process, to simulate their crash. */
const abandoned = new Set<string>();

/** Listeners by incarnation. */
const abandonListeners = new Map<string, Set<() => void>>();

/** Treats the incarnation as dead from now on, although its process lives on. */
export function abandonIncarnation(incarnation: string): void {
  abandoned.add(incarnation);
  const listeners = abandonListeners.get(incarnation);
  abandonListeners.delete(incarnation);
  for (const listener of listeners ?? []) listener();
}

/** Calls the listener when the incarnation is abandoned. Returns a function that removes the listener. */
export function onAbandoned(incarnation: string, listener: () => void): () => void {
  const listeners = abandonListeners.get(incarnation) ?? new Set();
  abandonListeners.set(incarnation, listeners.add(listener));
  return () => {
    listeners.delete(listener);
    if (listeners.size === 0 && abandonListeners.get(incarnation) === listeners)
      abandonListeners.delete(incarnation);
  };
}

/** Treats an abandoned incarnation as alive again, for the next execution. */
export const readmitIncarnation = (incarnation: string): void => void abandoned.delete(incarnation);

/** Whether the incarnation was abandoned in this process. */
export const isAbandoned = (incarnation: string): boolean => abandoned.has(incarnation.split(':')[0] ?? '');

type ThisProcess = ProcessIdentity & { readonly host: string };

let known: ThisProcess | undefined;

/** Identity of this process, with the host on which its pid is valid. */
export function thisProcess(): ThisProcess {
  known ??= { pid: process.pid, processStart: processStart(process.pid) ?? 'unknown', host: hostOfPids() };
  return known;
}

/**
 * Whether the process table shows the processes of another process of this machine: it has the same pid namespace. Also
 * `true` if the machine was restarted since, which left none.
 */
export function isVisible({ host, processStart }: Omit<ThisProcess, 'pid'>): boolean {
  const self = thisProcess();
  const bootOf = (start: string) => start.split(':')[0];
  return namespaceOf(host) === namespaceOf(self.host) || bootOf(processStart) !== bootOf(self.processStart);
}

const namespaceOf = (host: string): string | undefined => /pid:\[\d+\]$/.exec(host)?.[0];

const initialNamespace = 'pid:[4026531836]';

/**
 * Host name with the pid namespace. Containers may share a host name but not their pids: without the namespace, the
 * owner of a run in one container would look dead from another.
 */
function hostOfPids(): string {
  try {
    const namespace = readlinkSync('/proc/self/ns/pid');
    return namespace === initialNamespace ? hostname() : `${hostname()} ${namespace}`;
  } catch {
    return hostname();
  }
}
