/**
 * Joins what `tsc` made of `src/` into `dist/`. Every module keeps a file under its own path, but those that are always
 * loaded together share one: opening and linking a hundred files takes 40 ms of every start.
 */
import { existsSync, mkdirSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { rolldown } from 'rolldown';

const root = fileURLToPath(new URL('..', import.meta.url));
const compiled = join(root, 'node_modules', '.cache', 'build');
const dist = join(root, 'dist');

const filesIn = folder =>
  readdirSync(folder, { recursive: true, withFileTypes: true })
    .filter(entry => entry.isFile())
    .map(entry => join(entry.parentPath, entry.name).slice(folder.length + 1));

/** `tsc` leaves the output of modules that have been deleted since. */
const hasSource = file => {
  const path = join(root, 'src', file.replace(/(\.d\.ts|\.js)$/, ''));
  return existsSync(`${path}.ts`) || existsSync(`${path}.tsx`);
};

/**
 * The files that are shared, each with all that these modules import at once, but for what is in an earlier one.
 * `function-step` is one by itself: a step that fails shows its stack from above the file of this name.
 */
const shared = [
  { name: 'start', of: ['cli/version.js'] },
  {
    name: 'base',
    of: ['core/time.js', 'core/json.js', 'engine/run/messages.js', 'engine/log-files.js', 'git/names.js'],
  },
  { name: 'function-step', of: ['engine/run/function-step.js'] },
  { name: 'library', of: ['index.js'] },
  { name: 'command-line', of: ['cli/run-process.js'] },
  { name: 'running', of: ['commands/run.js', 'commands/resume.js'] },
  { name: 'config', of: ['workflow/yaml/config.js'] },
  { name: 'agents', of: ['agents/definitions.js'] },
  { name: 'yaml', of: ['workflow/yaml/load.js'] },
  { name: 'work', of: ['engine/step/index.js'] },
  { name: 'journal', of: ['project/journal/run-journal.js'] },
  { name: 'sessions', of: ['agents/kinds.js'] },
  { name: 'report', of: ['terminal/index.js'] },
];

/** Packages, and modules that are not there: `tsc` reports those, and only what imports them is broken. */
const isOutside = (id, importer) =>
  id.startsWith('.') ? !existsSync(join(dirname(importer), id)) : !id.startsWith(compiled);

async function bundle(modules) {
  const build = await rolldown({
    input: Object.fromEntries(modules.map(file => [file.replace(/\.js$/, ''), join(compiled, file)])),
    external: isOutside,
    cwd: compiled,
    platform: 'node',
    preserveEntrySignatures: 'allow-extension',
  });
  const { output } = await build.generate({
    entryFileNames: '[name].js',
    chunkFileNames: 'shared/[name].js',
    minifyInternalExports: false,
    codeSplitting: {
      groups: shared.map(({ name, of }) => ({
        name,
        test: id => of.includes(id.slice(compiled.length + 1)),
      })),
    },
  });
  for (const { fileName, moduleIds } of output) checkDepth(fileName, moduleIds);
  return output.map(({ fileName, code }) => [fileName, code]);
}

const depthOf = file => file.split('/').length;

/** A module that finds files by where it is would find others from another depth. */
function checkDepth(fileName, moduleIds) {
  for (const id of moduleIds) {
    const file = id.slice(compiled.length + 1);
    if (!readFileSync(id, 'utf8').match(/new URL\([^)]*import\.meta\.url/)) continue;
    if (depthOf(file) !== depthOf(fileName)) throw new Error(`${file} cannot be moved to ${fileName}`);
  }
}

const sources = filesIn(compiled).filter(hasSource);
const bundled = await bundle(sources.filter(file => file.endsWith('.js')));
const types = sources
  .filter(file => file.endsWith('.d.ts'))
  .map(file => [file, readFileSync(join(compiled, file), 'utf8')]);
const files = new Map([...bundled, ...types]);

for (const [file, text] of files) {
  const path = join(dist, file);
  // What has not changed is left alone: another process may be about to load it.
  if (existsSync(path) && readFileSync(path, 'utf8') === text) continue;
  mkdirSync(dirname(path), { recursive: true });
  writeFileSync(path, text);
}
for (const file of existsSync(dist) ? filesIn(dist) : []) {
  if (!files.has(file)) rmSync(join(dist, file));
}
