import { readFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';

/** The folder of this package. */
export const packageFolder = (): string => fileURLToPath(new URL('../..', import.meta.url));

let known: string | undefined;

/** The version of this package. */
export function version(): string {
  known ??= String(JSON.parse(readFileSync(new URL('../../package.json', import.meta.url), 'utf8')).version);
  return known;
}
