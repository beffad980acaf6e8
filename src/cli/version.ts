import { readFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';

/** The folder of this package. */
export const packageFolder = (): string => fileURLToPath(new URL('../..', import.meta.url));

/** The version of this package. */
export const version = (): string =>
  JSON.parse(readFileSync(new URL('../../package.json', import.meta.url), 'utf8')).version;
