import { accessSync, constants, statSync } from 'node:fs';
import { delimiter, isAbsolute, join, resolve } from 'node:path';

export interface WhereToLook {
  readonly path: string | undefined;
  readonly cwd: string;
}

/** The file that a name means: looked up on `PATH`, or in `cwd` if it holds a slash; `undefined` if there is none. */
export function findProgram(name: string, { path = '/usr/bin:/bin', cwd }: WhereToLook): string | undefined {
  if (isAbsolute(name) || name.includes('/')) return onlyIfProgram(resolve(cwd, name));
  for (const folder of path.split(delimiter)) {
    const found = onlyIfProgram(join(folder === '' ? cwd : folder, name));
    if (found) return found;
  }
  return undefined;
}

function onlyIfProgram(file: string): string | undefined {
  try {
    accessSync(file, constants.X_OK);
    return statSync(file).isFile() ? file : undefined;
  } catch {
    return undefined;
  }
}
