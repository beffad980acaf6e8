import { type Dirent, readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';

/** Texts by path, relative to the project's root. */
export type DefinitionFiles = Readonly<Record<string, string>>;

/** The settings, workflows and agents of a project: they may be changed, or never committed, when a test is made. */
export function definitionFiles(root: string, sources: readonly string[] = []): DefinitionFiles {
  const files: Record<string, string> = {};
  const keep = (path: string) => {
    try {
      files[path] = readFileSync(join(root, path), 'utf8');
    } catch {
      // Not there, or no text.
    }
  };
  keep('reprise.yaml');
  for (const folder of ['.reprise/workflows', '.reprise/agents'])
    for (const path of filesBelow(root, folder)) keep(path);
  for (const source of sources.filter(isOfProject)) {
    keep(source);
    // `module.ts#export`
    keep(source.replace(/#[^#/]*$/, ''));
  }
  return files;
}

/** Not those that were made from the command line, which makes them again. */
const isOfProject = (path: string): boolean => !/^(\.\.\/|\/|\.reprise\/state\/)/.test(path);

const filesBelow = (root: string, folder: string): readonly string[] =>
  entriesOf(join(root, folder)).flatMap(entry => {
    const path = `${folder}/${entry.name}`;
    return entry.isDirectory() ? filesBelow(root, path) : path;
  });

function entriesOf(folder: string): readonly Dirent[] {
  try {
    return readdirSync(folder, { withFileTypes: true });
  } catch {
    return [];
  }
}
