import { spawnSync } from 'node:child_process';
import type { Marker, ProcessEntry, ProcessTable } from './process-table.ts';

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
