/** The name of an artifact that was given no other: that of its file, without the extension. */
export const artifactName = (path: string): string =>
  (/[^/]*$/.exec(path.replace(/\/+$/, ''))?.[0] ?? '').replace(/(?<=.)\.[^.]*$/, '');

/** Why a path cannot be that of an artifact, as the rest of a sentence; `undefined` if it can. */
export function objectToArtifactPath(path: string): string | undefined {
  if (path.includes('\0')) return 'must not contain a NUL character';
  if (path.startsWith('/') || path.startsWith('~')) return 'must be relative to the workspace';
  const parts = path.split('/');
  if (parts.includes('..')) return 'must stay inside the workspace';
  if (parts.every(part => part === '' || part === '.')) return 'must name a file';
  return undefined;
}
