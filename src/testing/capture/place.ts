import { existsSync, readdirSync, statSync } from 'node:fs';
import { basename, join, resolve } from 'node:path';
import type { FoundCase } from '../../cases/manifest/find.ts';
import { RepriseError } from '../../core/errors.ts';
import { refused } from './refusal.ts';

/** Where the case will be. Throws USAGE, and CAPTURE_REFUSED if something is there. */
export function placeOfCase(
  id: string,
  { cwd, force }: { readonly cwd: string; readonly force: boolean },
): FoundCase {
  const segments = id.split('/');
  if (!segments.every(segment => /^[A-Za-z0-9_][\w-]*$/.test(segment))) {
    throw new RepriseError('USAGE', `a case cannot be named ${JSON.stringify(id)}`, {
      hint: 'use letters, digits, - and _, with a group before it if you like: landing/lost_race',
    });
  }
  const root = resolve(cwd, 'cases');
  const name = segments.at(-1) ?? '';
  const folder = join(root, ...segments);
  for (let length = 1; length < segments.length; length++) {
    const outer = segments.slice(0, length);
    if (isCase(join(root, ...outer)))
      throw refused(
        `cases/${outer.join('/')} is a case itself, and cannot hold others`,
        'choose another name',
      );
  }
  const display = `cases/${id}`;
  if (existsSync(folder) && !isCase(folder) && !isEmpty(folder))
    throw refused(`${display} is there already, and is no case`, 'choose another name');
  if (isCase(folder) && !force)
    throw refused(`there is a case ${id} already`, 'choose another name, or replace it with --force');
  return {
    name,
    group: segments.slice(0, -1).join('/'),
    folder,
    file: join(folder, `${name}.toml`),
    displayFile: `${display}/${name}.toml`,
  };
}

const isCase = (folder: string): boolean => existsSync(join(folder, `${basename(folder)}.toml`));

const isEmpty = (folder: string): boolean =>
  statSync(folder).isDirectory() && readdirSync(folder).length === 0;
