import type { Site } from './site.ts';

/** Why a path cannot be that of a file in a folder, as the rest of a sentence. */
export function objectToPath(path: string, folder: string): string | undefined {
  if (path.includes('\0')) return 'must not contain a NUL character';
  if (/^(\/|~|[a-z]:)/i.test(path)) return `must be relative to ${folder}`;
  if (path.includes('\\')) return 'must be written with / between folders';
  const parts = path.split('/');
  if (parts.includes('..')) return `must stay inside ${folder}`;
  if (parts.some(part => part.toLowerCase() === '.git')) return 'must not be inside of .git';
  if (parts.some(part => part === '' || part === '.'))
    return 'must name a file, with nothing empty between /';
  return undefined;
}

/** Objects to a key that is no path. */
export function checkPathKey(path: string, site: Site): void {
  const objection = objectToPath(path, 'the test repository');
  if (objection) site.object({ message: `the path \`${path}\` ${objection}`, atKey: true });
}

/** The first path that another one needs as a folder. */
export function fileInTheWay(paths: readonly string[]): { file: string; path: string } | undefined {
  const files = new Set(paths);
  for (const path of paths) {
    for (let end = path.indexOf('/'); end >= 0; end = path.indexOf('/', end + 1)) {
      const file = path.slice(0, end);
      if (files.has(file)) return { file, path };
    }
  }
  return undefined;
}
