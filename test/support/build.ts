import { spawnSync } from 'node:child_process';
import { existsSync } from 'node:fs';

/**
 * Tests that start real processes run what users run: the built package. Type errors do not stop it here;
 * `npm run check` reports them better.
 */
export default function setup(): void {
  const tsc = ['node_modules/typescript/bin/tsc', '-p', 'tsconfig.build.json'];
  const { stdout } = spawnSync(process.execPath, tsc, { encoding: 'utf8' });
  const { status, stderr } = spawnSync(process.execPath, ['scripts/bundle.mjs'], { encoding: 'utf8' });
  if (status !== 0 || !existsSync('dist/project/open-engine.js')) {
    throw new Error(`the build failed:\n${stdout}${stderr}`);
  }
}
