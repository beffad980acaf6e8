import { spawnSync } from 'node:child_process';
import { contenderFile } from './build.ts';

type Argument = string | number;

/** Runs one case of one contender in a fresh process and returns its measurements. */
export const inChild = <T>(contender: string, ...args: readonly Argument[]): T =>
  inChildOf(process.execPath, contender, ...args);

/** Runs one case of one contender with another version of Node. */
export function inChildOf<T>(node: string, contender: string, ...args: readonly Argument[]): T {
  const { status, stdout, stderr } = spawnSync(node, [contenderFile(contender), ...args.map(String)], {
    encoding: 'utf8',
    maxBuffer: 1 << 26,
  });
  if (status !== 0) throw new Error(`${contender} ${args.join(' ')} failed:\n${stderr || stdout}`);
  return JSON.parse(stdout.trim().split('\n').at(-1) ?? '') as T;
}

/** Runs a case that kills its own process, and returns its measurements. */
export function killedChild<T>(contender: string, ...args: readonly Argument[]): T {
  const { signal, stdout, stderr } = spawnSync(
    process.execPath,
    [contenderFile(contender), ...args.map(String)],
    {
      encoding: 'utf8',
    },
  );
  if (signal !== 'SIGKILL')
    throw new Error(`${contender} ${args.join(' ')} was not killed:\n${stderr || stdout}`);
  return JSON.parse(stdout) as T;
}

/** Wall time of a process that runs this code, in milliseconds. */
export function wallMs(args: readonly string[]): number {
  const before = performance.now();
  const { status, stderr } = spawnSync(process.execPath, args, { encoding: 'utf8' });
  if (status !== 0) throw new Error(`node ${args.join(' ')} failed:\n${stderr}`);
  return performance.now() - before;
}
