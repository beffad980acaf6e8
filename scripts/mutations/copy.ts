/** Copies of the product in which source files can be broken one at a time. */
import {
  cpSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { transformSync } from 'rolldown/utils';
import type { Change, Mutation } from './mutations.ts';

const root = fileURLToPath(new URL('../..', import.meta.url));

/** Creates the folder for all copies. The caller removes it. */
export const makeFolder = (): string => mkdtempSync(join(tmpdir(), 'reprise-mutations-'));

/** Compiles the source once, without checking types: a type error must not count as catching a mutation. */
export function compileSource(folder: string): string {
  const dist = join(folder, 'dist');
  for (const file of sourceFiles()) compileInto({ text: readSource(file), file, dist });
  return dist;
}

interface Copy {
  readonly folder: string;
  readonly name: string;
  readonly dist: string;
}

/** Creates a project with the built program, the cases, and the packages that they need. */
export function makeCopy({ folder, name, dist }: Copy): string {
  const copy = join(folder, name);
  mkdirSync(copy);
  cpSync(dist, join(copy, 'dist'), { recursive: true });
  cpSync(join(root, 'cases'), join(copy, 'cases'), { recursive: true });
  cpSync(join(root, 'package.json'), join(copy, 'package.json'));
  symlinkSync(join(root, 'node_modules'), join(copy, 'node_modules'));
  return copy;
}

/** Applies a mutation to the built files of a copy. Returns a function that reverts it. */
export function breakCopy(copy: string, { name, changes }: Mutation): () => void {
  const dist = join(copy, 'dist');
  const files = [...new Set(changes.map(({ file }) => file))];
  for (const file of files) {
    const text = changes
      .filter(change => change.file === file)
      .reduce((before, change) => replaceOnce(before, change, name), readSource(file));
    compileInto({ text, file, dist });
  }
  return () => {
    for (const file of files) compileInto({ text: readSource(file), file, dist });
  };
}

/** Throws unless the text to replace occurs exactly once. */
function replaceOnce(text: string, { file, find, replace }: Change, name: string): string {
  const times = text.split(find).length - 1;
  if (times !== 1) {
    throw new Error(
      `the mutation "${name}" does not apply: src/${file} contains its text ${times} times instead of once:\n${find}\nupdate it in scripts/mutations/mutations.ts`,
    );
  }
  return text.replace(find, () => replace);
}

const readSource = (file: string) => readFileSync(join(root, 'src', file), 'utf8');

const sourceFiles = () =>
  readdirSync(join(root, 'src'), { recursive: true, encoding: 'utf8' })
    .map(file => file.replaceAll('\\', '/'))
    .filter(file => /\.tsx?$/.test(file) && !/(\.test|\.conformance|\/test-support)\.tsx?$/.test(file));

interface SourceFile {
  readonly text: string;
  /** Path below `src/`. */
  readonly file: string;
  readonly dist: string;
}

/** Compiles one file of the source. */
export function compileInto({ text, file, dist }: SourceFile): void {
  const { code, errors } = transformSync(file, text, options);
  if (errors.length > 0) throw new Error(`src/${file}: ${errors[0]?.message}`);
  const target = join(dist, file.replace(/\.tsx?$/, '.js'));
  if (!existsSync(dirname(target))) mkdirSync(dirname(target), { recursive: true });
  writeFileSync(target, code);
}

const options = {
  typescript: { onlyRemoveTypeImports: true, rewriteImportExtensions: 'rewrite' },
  jsx: { runtime: 'automatic' },
} as const;
