/** A copy of the product in a folder of its own, in which files of the source can be broken one at a time. */
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

/** A folder for all copies, to be removed in the end. */
export const makeFolder = (): string => mkdtempSync(join(tmpdir(), 'reprise-mutations-'));

/** Compiles the source once. Types are not looked at: a broken type is no way to catch a mutation. */
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

/** A project that has the built program, the cases, and the packages that they need. */
export function makeCopy({ folder, name, dist }: Copy): string {
  const copy = join(folder, name);
  mkdirSync(copy);
  cpSync(dist, join(copy, 'dist'), { recursive: true });
  cpSync(join(root, 'cases'), join(copy, 'cases'), { recursive: true });
  cpSync(join(root, 'package.json'), join(copy, 'package.json'));
  symlinkSync(join(root, 'node_modules'), join(copy, 'node_modules'));
  return copy;
}

/** Breaks the built files of a copy as the mutation says. Gives the function that mends them. */
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

/** Throws if the text that is to be changed is not there, or not only once. */
function replaceOnce(text: string, { file, find, replace }: Change, name: string): string {
  const times = text.split(find).length - 1;
  if (times !== 1) {
    throw new Error(
      `the mutation "${name}" does not apply: src/${file} has its text ${times} times, not once:\n${find}\nwrite it anew in scripts/mutations/mutations.ts`,
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
  /** Below `src/`. */
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
