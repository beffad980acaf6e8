import { mkdtempSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';
import { build } from 'rolldown';

/**
 * Records the cases in which a real agent works; with names as arguments, only those that have them in their name. What
 * does it is TypeScript, which not every Node that is supported runs.
 */
const folder = mkdtempSync(join('node_modules', '.cache', 'record-agents-'));
try {
  const file = join(folder, 'main.mjs');
  await build({ input: 'test/agents/recording/main.ts', platform: 'node', output: { file, format: 'esm' } });
  await import(pathToFileURL(file).href);
} finally {
  rmSync(folder, { recursive: true, force: true });
}
