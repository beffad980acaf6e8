import { spawnSync } from 'node:child_process';
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import { pathToFileURL } from 'node:url';
import { describe, expect, it, onTestFinished } from 'vitest';

const dist = resolve('dist');
const cli = join(dist, 'cli', 'main.js');

/** Files that Node loads; those of the package are relative to `dist/`. `project` contains files of the folder. */
function loadedBy(
  args: readonly string[],
  project: Readonly<Record<string, string>> = {},
): readonly string[] {
  const folder = mkdtempSync(join(tmpdir(), 'reprise-loading-'));
  onTestFinished(() => rmSync(folder, { recursive: true, force: true }));
  const list = join(folder, 'loaded');
  const hook = `import { appendFileSync } from 'node:fs';
export async function load(url, context, next) {
  if (url.startsWith('file:')) appendFileSync(${JSON.stringify(list)}, url + '\\n');
  return next(url, context);
}`;
  writeFileSync(join(folder, 'hook.mjs'), hook);
  // The hook does not see what is loaded with `require`.
  const start = `import { appendFileSync } from 'node:fs';
import Module, { register } from 'node:module';
import { pathToFileURL } from 'node:url';
register(${JSON.stringify(pathToFileURL(join(folder, 'hook.mjs')).href)});
process.on('exit', () => {
  for (const file of Object.keys(Module._cache)) appendFileSync(${JSON.stringify(list)}, pathToFileURL(file) + '\\n');
});`;
  writeFileSync(join(folder, 'start.mjs'), start);
  for (const [name, text] of Object.entries(project)) writeFileSync(join(folder, name), text);
  const importing = ['--import', pathToFileURL(join(folder, 'start.mjs')).href];
  const { status, stderr } = spawnSync(process.execPath, [...importing, ...args], {
    cwd: folder,
    encoding: 'utf8',
  });
  expect([status, project['w.yaml'] ? '' : stderr]).toEqual([0, '']);
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

  it.each([
    ['nothing for a workflow without a schema', '', []],
    ['ajv and re2js for one with a schema', ', output: { pattern: a }', ['ajv', 're2js']],
  ])('loads of its checks %s', (_, output, packages) => {
    const workflow = `{ name: w, steps: [{ id: a, run: "true"${output} }] }`;
    const loaded = loadedBy([cli, 'run', 'w.yaml'], { 'w.yaml': workflow });
    const checks = ['ajv', 're2js'].filter(name =>
      loaded.some(file => file.includes(`/node_modules/${name}/`)),
    );
    expect(checks).toEqual(packages);
  });

  it('loads no dependency and no lazy chunk for `import "reprise"`', () => {
    expect(loadedBy(importing('index.js')).toSorted()).toEqual([
      'index.js',
      'shared/base.js',
      'shared/library.js',
    ]);
  });
});

describe('the shell parser', () => {
  /** Whether a command of Reprise loads the parser, in a folder with a workflow of two scripts. */
  function parses(args: readonly string[], second = 'echo b'): boolean {
    const folder = mkdtempSync(join(tmpdir(), 'reprise-loading-'));
    onTestFinished(() => rmSync(folder, { recursive: true, force: true }));
    const steps = `steps: [{ id: a, run: echo a }, { id: b, needs: [a], run: ${JSON.stringify(second)} }]`;
    writeFileSync(join(folder, 'w.yaml'), `inputs: { x: { default: y } }\n${steps}\n`);
    const probe = join(folder, 'probe.cjs');
    writeFileSync(
      probe,
      `const { appendFileSync } = require('node:fs');
process.on('exit', () => appendFileSync('loaded', Object.keys(require.cache).join('\\n') + '\\n'));`,
    );
    const { status } = spawnSync(process.execPath, ['--require', probe, cli, ...args], { cwd: folder });
    expect(status).toBe(0);
    return readFileSync(join(folder, 'loaded'), 'utf8').includes('/node_modules/unbash/');
  }

  it('is not loaded by commands that judge no shell text', () => {
    expect(parses(['--version'])).toBe(false);
    expect(parses(['list'])).toBe(false);
    expect(parses(['run', 'w.yaml'])).toBe(false);
  });

  it('is loaded for a script with a value', () => {
    expect(parses(['run', 'w.yaml'], 'echo ${{ inputs.x }}')).toBe(true);
  });
});
