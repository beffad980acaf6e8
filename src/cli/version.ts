import { existsSync, readFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';

/** Root folder of this package: the nearest folder above this file with a `package.json`. */
export function packageFolder(): string {
  let folder = dirname(fileURLToPath(import.meta.url));
  while (!existsSync(join(folder, 'package.json'))) folder = dirname(folder);
  return folder;
}

/** Absolute path of the CLI. */
export const cliFile = (): string => join(packageFolder(), 'dist', 'cli', 'main.js');

let cached: string | undefined;

/** Version of this package. */
export function version(): string {
  cached ??= String(JSON.parse(readFileSync(join(packageFolder(), 'package.json'), 'utf8')).version);
  return cached;
}
