/**
 * Plants bugs in a copy of the product, one at a time, and explores recorded cases there: each has to be found. A bug is a
 * patch of the source; the lines before its diff say what it breaks and, after `Cases:`, where it is looked for.
 *
 *   node scripts/planted/run.mjs [--patches <folder>] [--for <seconds>] [--sound] [name...]
 */
import { readdirSync, readFileSync, rmSync } from 'node:fs';
import { basename, join, resolve } from 'node:path';
import { fileURLToPath } from 'node:url';
import { parseArgs } from 'node:util';
import { compileSource, makeCopy, makeFolder } from '../mutations/copy.mjs';
import { exploreCopy } from './explore-copy.mjs';
import { plant } from './plant.mjs';
import { tableOf } from './table.mjs';

const here = fileURLToPath(new URL('.', import.meta.url));
/** Where a bug is looked for that does not say where. */
const usualCases = ['workers/concurrent_workers', 'workers/until_idle', 'workers/verify_fails'];

const { values, positionals } = parseArgs({
  allowPositionals: true,
  options: {
    patches: { type: 'string', default: join(here, 'patches') },
    for: { type: 'string', default: '60' },
    sound: { type: 'boolean', default: false },
  },
});
const seconds = Number(values.for);
const folder = makeFolder();
process.once('exit', () => rmSync(folder, { recursive: true, force: true, maxRetries: 3 }));
for (const signal of ['SIGINT', 'SIGTERM']) process.once(signal, () => process.exit(130));

process.exitCode = await run();

async function run() {
  const patches = readPatches(resolve(values.patches));
  if (patches.length === 0) {
    console.error(`there are no patches in ${values.patches}`);
    return 1;
  }
  const copy = makeCopy({ folder, name: 'copy', dist: compileSource(folder) });
  const rows = [];
  for (const patch of patches) {
    const mend = plant(copy, patch);
    const found = await exploreCopy(copy, { ...patch, seconds });
    mend();
    rows.push({ name: patch.name, ...found });
    console.log(tableOf.line(rows.at(-1)));
  }
  const missed = rows.filter(({ failure }) => !failure);
  console.log(`\n${tableOf(rows)}`);
  const soon = rows.filter(row => row.failure && row.seconds <= seconds);
  console.log(
    `\n${rows.length - missed.length} of ${rows.length} planted bugs found, ${soon.length} of them told in ${seconds} s or less`,
  );
  const unsound = values.sound ? await exploreSound(copy, patches) : [];
  return missed.length + unsound.length === 0 ? 0 : 1;
}

/** Without a bug, the same exploring finds nothing. */
async function exploreSound(copy, patches) {
  const searches = new Map(patches.map(patch => [patch.searches.join('\n'), patch]));
  const unsound = [];
  for (const patch of searches.values()) {
    const { failure } = await exploreCopy(copy, { ...patch, seconds });
    console.log(
      `without a bug, ${patch.searches.join('; ')}: ${failure ? failure.message : 'nothing found'}`,
    );
    if (failure) unsound.push(failure);
  }
  return unsound;
}

function readPatches(from) {
  return readdirSync(from)
    .filter(file => file.endsWith('.patch') || file.endsWith('.diff'))
    .sort()
    .map(file => ({ file: join(from, file), text: readFileSync(join(from, file), 'utf8') }))
    .map(({ file, text }) => ({
      name: basename(file).replace(/\.(patch|diff)$/, ''),
      file,
      text,
      searches:
        /^Cases: (.+)$/m
          .exec(text)?.[1]
          ?.split(';')
          .map(each => each.trim()) ?? usualCases,
    }))
    .filter(({ name }) => positionals.length === 0 || positionals.some(part => name.includes(part)));
}
