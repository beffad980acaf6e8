import { spawnSync } from 'node:child_process';
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import { pathToFileURL } from 'node:url';
import { describe, expect, it, onTestFinished } from 'vitest';

const dist = resolve('dist');
const cli = join(dist, 'cli', 'main.js');

/** Files that Node loads; those of the package are relative to `dist/`. */
function loadedBy(args: readonly string[]): readonly string[] {
  const folder = mkdtempSync(join(tmpdir(), 'reprise-loading-'));
  onTestFinished(() => rmSync(folder, { recursive: true, force: true }));
  const list = join(folder, 'loaded');
  const hook = `import { appendFileSync } from 'node:fs';
export async function load(url, context, next) {
  if (url.startsWith('file:')) appendFileSync(${JSON.stringify(list)}, url + '\\n');
  return next(url, context);
}`;
  writeFileSync(join(folder, 'hook.mjs'), hook);
  const start = `import { register } from 'node:module'; register(${JSON.stringify(pathToFileURL(join(folder, 'hook.mjs')).href)});`;
  writeFileSync(join(folder, 'start.mjs'), start);
  const importing = ['--import', pathToFileURL(join(folder, 'start.mjs')).href];
  const { status, stderr } = spawnSync(process.execPath, [...importing, ...args], {
    cwd: folder,
    encoding: 'utf8',
  });
  expect([status, stderr]).toEqual([0, '']);
  const prefix = `${pathToFileURL(dist).href}/`;
  return readFileSync(list, 'utf8')
    .trimEnd()
    .split('\n')
    .filter(url => !url.includes('reprise-loading-'))
    .map(url => url.replace(prefix, ''));
}

const importing = (file: string) => [
  '--input-type=module',
  '-e',
  `import ${JSON.stringify(join(dist, file))}`,
];

describe('the built package', () => {
  it('loads two files for `reprise --version`', () => {
    expect(loadedBy([cli, '--version'])).toEqual(['cli/main.js', 'shared/startup.js']);
  });

  it('loads commander and no command for `reprise --help`', () => {
    const loaded = loadedBy([cli, '--help']);
    expect(loaded.filter(file => !file.includes('/node_modules/commander/')).length).toBeLessThanOrEqual(6);
  });

  it('loads no dependency and no lazy chunk for `import "reprise"`', () => {
    expect(loadedBy(importing('index.js')).toSorted()).toEqual([
      'index.js',
      'shared/base.js',
      'shared/library.js',
    ]);
  });
});
