import { accessSync, constants, readdirSync, realpathSync } from 'node:fs';
import { dirname, join } from 'node:path';

const deepest = 5;

/**
 * The program behind the Node wrapper that npm installs as `codex`: killing the wrapper would leave the program
 * running to the end of its turn. `undefined` if this is no wrapper, or nothing is found behind it.
 */
export function nativeCodex(file: string): string | undefined {
  const real = realPath(file);
  if (real === undefined || !/\.[cm]?js$/.test(real)) return undefined;
  const packageFolder = dirname(dirname(real));
  const platform = `codex-${process.platform}-${process.arch}`;
  const places = [
    join(packageFolder, 'node_modules', '@openai', platform),
    join(dirname(packageFolder), platform),
    join(packageFolder, 'vendor'),
  ];
  for (const place of places) {
    const found = findBelow(place, deepest);
    if (found) return found;
  }
  return undefined;
}

function findBelow(folder: string, depth: number): string | undefined {
  const entries = entriesOf(folder);
  const name = process.platform === 'win32' ? 'codex.exe' : 'codex';
  const here = entries.find(entry => entry.isFile() && entry.name === name);
  if (here && isExecutable(join(folder, name))) return join(folder, name);
  if (depth === 0) return undefined;
  for (const entry of entries) {
    if (!entry.isDirectory() || isForAnotherMachine(entry.name)) continue;
    const found = findBelow(join(folder, entry.name), depth - 1);
    if (found) return found;
  }
  return undefined;
}

const cpus: Readonly<Record<string, string>> = { x64: 'x86_64', arm64: 'aarch64' };
const systems: Readonly<Record<string, string>> = { linux: 'linux', darwin: 'apple', win32: 'windows' };

/** Folders such as `aarch64-apple-darwin` stand side by side where one package is for all machines. */
const isForAnotherMachine = (name: string): boolean =>
  /^(x86_64|aarch64)-/.test(name) &&
  !(name.startsWith(`${cpus[process.arch]}-`) && name.includes(`-${systems[process.platform]}`));

function entriesOf(folder: string) {
  try {
    return readdirSync(folder, { withFileTypes: true });
  } catch {
    return [];
  }
}

function realPath(file: string): string | undefined {
  try {
    return realpathSync(file);
  } catch {
    return undefined;
  }
}

function isExecutable(file: string): boolean {
  try {
    accessSync(file, constants.X_OK);
    return true;
  } catch {
    return false;
  }
}
