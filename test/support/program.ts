import { join, relative } from 'node:path';
import { rolldown } from 'rolldown';
import { replaceFiles } from '../../scripts/build/files.ts';
import { root } from '../../scripts/build/package.ts';

/** Bundles a TypeScript program that imports from `src`, because Node 20 cannot run it. Returns the path of the bundle. */
export async function programOf(file: string): Promise<string> {
  const folder = join(root, 'node_modules/.cache/programs', relative(root, file).replace(/\.ts$/, ''));
  const external = (id: string) => !id.startsWith('.') && !id.startsWith('/');
  const build = await rolldown({ cwd: root, input: { program: file }, external, platform: 'node' });
  try {
    const { output } = await build.generate({ codeSplitting: false });
    replaceFiles(folder, '.js', new Map([['program.js', output[0].code]]));
  } finally {
    await build.close();
  }
  return join(folder, 'program.js');
}
