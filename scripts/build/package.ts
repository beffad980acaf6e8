import { join, resolve } from 'node:path';
import { type OutputChunk, rolldown } from 'rolldown';
import { replaceFiles } from './files.ts';

export const root = resolve(import.meta.dirname, '../..');
const source = (path: string): string => join(root, 'src', path);

const input = {
  index: source('index.ts'),
  testing: source('testing.ts'),
  'cli/main': source('cli/main.ts'),
};

const format = {
  entryFileNames: '[name].js',
  chunkFileNames: 'shared/[name].js',
  minifyInternalExports: false,
};

export const bundleOptions = {
  cwd: root,
  input,
  // Dependencies are installed, not bundled.
  external: (id: string) => !id.startsWith('.') && !id.startsWith('/'),
  platform: 'node',
  // Modules have no side effects, so a file that only re-exports costs nothing.
  treeshake: { moduleSideEffects: false },
  checks: { ineffectiveDynamicImport: false },
} as const;

/** Writes the JavaScript of the package to `dist/`. Modules loaded with `import()` are in separate files. */
export async function buildPackage(): Promise<void> {
  const build = await rolldown(bundleOptions);
  try {
    const apart = await build.generate(format);
    const start = loadedWith(input['cli/main'], chunksOf(apart));
    const library = loadedWith(input.index, chunksOf(apart));
    const commandLine = loadedWith(source('cli/run-process.ts'), chunksOf(apart));
    // Opening a file adds half a millisecond to every start, so the modules that an entry point always loads are one file.
    const groups = [
      { name: 'startup', test: (id: string) => start.has(id) && id !== input['cli/main'] },
      { name: 'base', test: (id: string) => library.has(id) && commandLine.has(id) },
      { name: 'library', test: (id: string) => library.has(id) },
      { name: 'command-line', test: (id: string) => commandLine.has(id) },
    ];
    const joined = await build.generate({ ...format, codeSplitting: { groups } });
    const files = new Map(chunksOf(joined).map(({ fileName, code }) => [fileName, code]));
    replaceFiles(join(root, 'dist'), '.js', files);
  } finally {
    await build.close();
  }
}

const chunksOf = ({ output }: { readonly output: readonly unknown[] }): readonly OutputChunk[] =>
  output as readonly OutputChunk[];

/** Returns the modules that Node loads before the first line of a module runs. */
function loadedWith(module: string, chunks: readonly OutputChunk[]): ReadonlySet<string> {
  const first = chunks.find(({ facadeModuleId }) => facadeModuleId === module);
  if (!first) throw new Error(`${module} is not an entry point or dynamic import`);
  const files = new Map(chunks.map(chunk => [chunk.fileName, chunk]));
  const seen = new Set([first]);
  for (const { imports } of seen)
    for (const file of imports) {
      const chunk = files.get(file);
      if (chunk) seen.add(chunk);
    }
  return new Set([...seen].flatMap(({ moduleIds }) => moduleIds));
}
