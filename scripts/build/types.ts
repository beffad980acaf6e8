import { spawnSync } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { dirname, join, relative } from 'node:path';
import ts from 'typescript';
import { replaceFiles } from './files.ts';
import { root } from './package.ts';

const declared = join(root, 'node_modules', '.cache', 'types');

/** Writes the types of the two entry points, and of what they name, to `dist/`. Throws if the source does not compile. */
export function buildTypes(): void {
  const tsc = join(root, 'node_modules/typescript/bin/tsc');
  const options = { cwd: root, encoding: 'utf8' } as const;
  const { status, stdout } = spawnSync(process.execPath, [tsc, '-p', 'tsconfig.build.json'], options);
  if (status !== 0) throw new Error(`the source does not compile:\n${stdout}`);
  const named = new Set(['index.d.ts', 'testing.d.ts'].map(file => join(declared, file)));
  for (const file of named) for (const other of namedBy(file)) named.add(other);
  const files = [...named].map(file => [relative(declared, file), readFileSync(file, 'utf8')] as const);
  replaceFiles(join(root, 'dist'), '.d.ts', new Map(files));
}

/** `tsc` keeps the extensions of the source in declarations. */
const namedBy = (file: string): readonly string[] =>
  ts
    .preProcessFile(readFileSync(file, 'utf8'))
    .importedFiles.filter(({ fileName }) => fileName.startsWith('.'))
    .map(({ fileName }) => join(dirname(file), fileName.replace(/\.tsx?$/, '.d.ts')));
