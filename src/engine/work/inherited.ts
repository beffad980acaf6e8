import { delimiter, dirname } from 'node:path';

const elsewhere: ReadonlySet<string> = new Set([
  'GIT_ALTERNATE_OBJECT_DIRECTORIES',
  'GIT_COMMON_DIR',
  'GIT_DIR',
  'GIT_INDEX_FILE',
  'GIT_NAMESPACE',
  'GIT_OBJECT_DIRECTORY',
  'GIT_PREFIX',
  'GIT_WORK_TREE',
  'OLDPWD',
]);

const ceilings = 'GIT_CEILING_DIRECTORIES';

/**
 * What is inherited in a workspace. A git hook that started us has variables that would lead every git command there
 * to the checkout of the user. Git would also find that checkout by itself, further up, if an agent removed the `.git`
 * of its folder; and a program that believes $PWD would work in it.
 */
export const inheritedInWorkspace = (
  env: Readonly<Record<string, string | undefined>>,
  folder: string,
): Readonly<Record<string, string | undefined>> => ({
  ...Object.fromEntries(Object.entries(env).filter(([name]) => !elsewhere.has(name))),
  PWD: folder,
  [ceilings]: [dirname(folder), ...(env[ceilings] ? [env[ceilings]] : [])].join(delimiter),
});
