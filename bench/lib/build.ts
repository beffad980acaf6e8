import { readdirSync } from 'node:fs';
import { join, resolve } from 'node:path';
import { pathToFileURL } from 'node:url';
import { rolldown } from 'rolldown';
import { replaceFiles } from '../../scripts/build/files.ts';

const root = resolve(import.meta.dirname, '../..');
const contenders = join(root, 'bench', 'contenders');
const library = join(root, 'src', 'index.ts');
/** Output folder. Same depth as the source, so that relative paths work, and next to the packages of the contenders. */
const built = join(root, 'bench', 'dist');

/** Returns the file that a process of the contender runs. */
export const contenderFile = (name: string): string => join(built, `${name}.js`);

/**
 * Builds the contenders, so that compiling TypeScript is not part of the measurements. Imports of the library refer to the
 * package in `dist/`. Internal modules are bundled the same way as in the package.
 */
export async function buildContenders(): Promise<void> {
  const programs = readdirSync(contenders).map(
    file => [file.replace(/\.ts$/, ''), join(contenders, file)] as const,
  );
  const build = await rolldown({
    cwd: root,
    input: { ...Object.fromEntries(programs), 'claude-stand-in': join(root, 'bench/lib/claude-stand-in.ts') },
    external: id => !id.startsWith('.') && !id.startsWith('/'),
    platform: 'node',
    treeshake: { moduleSideEffects: false },
    checks: { ineffectiveDynamicImport: false },
    plugins: [
      {
        name: 'library-as-built',
        async resolveId(id, importer) {
          if (!id.endsWith('src/index.ts') || !importer) return null;
          const found = resolve(importer, '..', id);
          const file = join(root, 'dist', 'index.js');
          return found === library ? { id: pathToFileURL(file).href, external: true } : null;
        },
      },
    ],
  });
  try {
    const { output } = await build.generate({
      entryFileNames: '[name].js',
      chunkFileNames: 'shared-[name].js',
    });
    const files = output.flatMap(part =>
      part.type === 'chunk' ? [[part.fileName, part.code] as const] : [],
    );
    replaceFiles(built, '.js', new Map(files));
  } finally {
    await build.close();
  }
}
