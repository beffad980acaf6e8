import { existsSync } from 'node:fs';
import { join } from 'node:path';
import type { Repository } from '../repository.ts';
import type { Place } from './place.ts';

/** Settings of a repository and a machine do not change while sessions are recorded. */
const settings = new WeakMap<Repository, Promise<boolean>>();

/** Whether files on disk may differ from what is stored for them: ends of lines, filters, encodings. */
export async function convertsFiles({ repository, folder }: Place): Promise<boolean> {
  const { commonDir } = repository;
  if (existsSync(join(folder, '.gitattributes')) || existsSync(join(commonDir, 'info', 'attributes')))
    return true;
  const known = settings.get(repository) ?? askSettings(repository);
  settings.set(repository, known);
  return known;
}

async function askSettings({ git }: Repository): Promise<boolean> {
  const args = ['config', '--get-regexp', '^(core\\.(autocrlf|eol|attributesfile)|filter\\..*)$'];
  return (await git.run(args)).code === 0;
}
