import { copyFile, mkdir, realpath, rename, stat } from 'node:fs/promises';
import { dirname, extname, join, resolve, sep } from 'node:path';
import { RepriseError } from '../../core/index.ts';
import { safeSegment, syncPaths } from '../../git/index.ts';
import type { ArtifactRule } from '../../workflow/index.ts';
import type { Artifact } from '../run/messages.ts';

export interface CollectRequest {
  /** Absolute path of the folder that contains the files. */
  readonly folder: string;
  readonly rules: readonly ArtifactRule[];
  /** Folder for the copies. */
  readonly target: string;
  /** Returns the path of a copy in the history. */
  readonly nameOf: (file: string) => string;
}

/**
 * Copies the artifacts of a step. Throws ARTIFACT_INVALID unless each is a file that is inside the workspace after all
 * symbolic links are resolved.
 */
export async function collectArtifacts(request: CollectRequest): Promise<readonly Artifact[]> {
  const { folder, rules, target, nameOf } = request;
  const inside = await realpath(folder);
  await mkdir(target, { recursive: true });
  const artifacts: Artifact[] = [];
  for (const rule of rules) {
    const source = await fileOf(inside, rule);
    const file = artifactFile(target, rule);
    const partial = `${file}.part`;
    // A rename replaces the file atomically, so a process that reads the old copy is not disturbed.
    await copyFile(source, partial);
    await syncPaths([partial]);
    await rename(partial, file);
    artifacts.push({ name: rule.name, path: nameOf(file) });
  }
  if (artifacts.length > 0) await syncPaths([target, dirname(target)]);
  return artifacts;
}

/** Returns the path of an artifact's copy. */
export const artifactFile = (target: string, { name, path }: ArtifactRule): string =>
  join(target, `${safeSegment(name)}${safeExtension(path)}`);

async function fileOf(folder: string, { name, path }: ArtifactRule): Promise<string> {
  const real = await realpath(resolve(folder, path)).catch(() => undefined);
  if (real === undefined) {
    throw invalid(`the artifact \`${name}\` is missing: there is no ${path} in ${folder}`, {
      hint: 'make the step write it, or correct its `path`, which is relative to the workspace',
    });
  }
  if (!real.startsWith(`${folder}${sep}`)) {
    throw invalid(`the artifact \`${name}\` is outside of the workspace: ${path} leads to ${real}`, {
      hint: 'copy the file into the workspace first',
    });
  }
  if (!(await stat(real)).isFile()) {
    throw invalid(`the artifact \`${name}\` is not a file: ${path}`, {
      hint: 'to pass on a folder, archive it: tar -czf name.tar.gz folder',
    });
  }
  return real;
}

const safeExtension = (path: string): string => /^\.[A-Za-z0-9]{1,16}$/.exec(extname(path))?.[0] ?? '';

const invalid = (message: string, options: { readonly hint: string }): RepriseError =>
  new RepriseError('ARTIFACT_INVALID', message, options);
