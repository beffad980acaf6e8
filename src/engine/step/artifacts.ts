import { copyFile, mkdir, realpath, rename, stat } from 'node:fs/promises';
import { extname, join, relative, resolve, sep } from 'node:path';
import { RepriseError } from '../../core/errors.ts';
import { safeSegment } from '../../git/names.ts';
import type { ArtifactRule } from '../../workflow/model.ts';
import type { Artifact } from '../run/messages.ts';

export interface CollectRequest {
  /** Where the work was done. */
  readonly folder: string;
  readonly rules: readonly ArtifactRule[];
  /** Where the copies go. */
  readonly target: string;
  readonly projectRoot: string;
}

/**
 * Copies the files that a step hands on. Throws ARTIFACT_INVALID unless each of them is a file inside the workspace,
 * whatever links lead to it.
 */
export async function collectArtifacts(request: CollectRequest): Promise<readonly Artifact[]> {
  const { folder, rules, target, projectRoot } = request;
  const inside = await realpath(folder);
  await mkdir(target, { recursive: true });
  const artifacts: Artifact[] = [];
  for (const rule of rules) {
    const source = await fileOf(inside, rule);
    const file = artifactFile(target, rule);
    const beside = `${file}.part`;
    // Whoever reads the old copy goes on reading that.
    await copyFile(source, beside);
    await rename(beside, file);
    artifacts.push({ name: rule.name, path: relative(projectRoot, file) });
  }
  return artifacts;
}

/** The copy of an artifact. */
export const artifactFile = (target: string, { name, path }: ArtifactRule): string =>
  join(target, `${safeSegment(name)}${safeExtension(path)}`);

async function fileOf(folder: string, { name, path }: ArtifactRule): Promise<string> {
  const real = await realpath(resolve(folder, path)).catch(() => undefined);
  if (real === undefined) {
    throw invalid(`the artifact \`${name}\` is missing: there is no ${path} in ${folder}`, {
      hint: 'let the step write it, or correct its path, which is relative to the workspace',
    });
  }
  if (!real.startsWith(`${folder}${sep}`)) {
    throw invalid(`the artifact \`${name}\` is outside of the workspace: ${path} leads to ${real}`, {
      hint: 'copy the file into the workspace first',
    });
  }
  if (!(await stat(real)).isFile()) {
    throw invalid(`the artifact \`${name}\` is not a file: ${path}`, {
      hint: 'a folder can be handed on as an archive: tar -czf name.tar.gz folder',
    });
  }
  return real;
}

const safeExtension = (path: string): string => /^\.[A-Za-z0-9]{1,16}$/.exec(extname(path))?.[0] ?? '';

const invalid = (message: string, options: { readonly hint: string }): RepriseError =>
  new RepriseError('ARTIFACT_INVALID', message, options);
