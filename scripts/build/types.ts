import { spawnSync } from 'node:child_process';
import { join } from 'node:path';
import { rolldown } from 'rolldown';
import { dts } from 'rolldown-plugin-dts';
import { replaceFiles } from './files.ts';
import { root } from './package.ts';

const declared = join(root, 'node_modules', '.cache', 'types');

/** Writes the types of the two entry points, each in one file, to `dist/`. Throws if the source does not compile. */
export async function buildTypes(): Promise<void> {
  const tsc = join(root, 'node_modules/typescript/bin/tsc');
  const options = { cwd: root, encoding: 'utf8' } as const;
  const { status, stdout } = spawnSync(process.execPath, [tsc, '-p', 'tsconfig.build.json'], options);
  if (status !== 0) throw new Error(`the source does not compile:\n${stdout}`);
  const build = await rolldown({
    cwd: root,
    input: { index: join(declared, 'index.d.ts'), testing: join(declared, 'testing.d.ts') },
    external: id => !id.startsWith('.') && !id.startsWith('/'),
    plugins: [dts({ dtsInput: true })],
  });
  try {
    const { output } = await build.generate({
      chunkFileNames: 'shared/types.d.ts',
      minifyInternalExports: false,
    });
    const files = output.map(
      file => [file.fileName, file.type === 'chunk' ? file.code : String(file.source)] as const,
    );
    replaceFiles(join(root, 'dist'), '.d.ts', new Map(files));
  } finally {
    await build.close();
  }
}
