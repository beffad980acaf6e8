import { spawnSync } from 'node:child_process';
import { fileURLToPath } from 'node:url';

const contenderFile = name => fileURLToPath(new URL(`../contenders/${name}.mjs`, import.meta.url));

/** Runs one case of one contender in a fresh process and gives back what it measured. */
export function inChild(contender, ...args) {
  const { status, stdout, stderr } = spawnSync(
    process.execPath,
    [contenderFile(contender), ...args.map(String)],
    {
      encoding: 'utf8',
      maxBuffer: 1 << 26,
    },
  );
  if (status !== 0) throw new Error(`${contender} ${args.join(' ')} failed:\n${stderr || stdout}`);
  return JSON.parse(stdout.trim().split('\n').at(-1));
}

/** The same for one that ends by killing itself. */
export function killedChild(contender, ...args) {
  const { signal, stdout, stderr } = spawnSync(
    process.execPath,
    [contenderFile(contender), ...args.map(String)],
    {
      encoding: 'utf8',
    },
  );
  if (signal !== 'SIGKILL')
    throw new Error(`${contender} ${args.join(' ')} was not killed:\n${stderr || stdout}`);
  return JSON.parse(stdout);
}

/** Milliseconds from the start of a process that runs this code to its end. */
export function wallMs(args) {
  const before = performance.now();
  const { status, stderr } = spawnSync(process.execPath, args, { encoding: 'utf8' });
  if (status !== 0) throw new Error(`node ${args.join(' ')} failed:\n${stderr}`);
  return performance.now() - before;
}
