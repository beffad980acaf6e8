/**
 * Plants bugs in a copy of the product, one at a time, and explores recorded cases there: each bug must be found. A bug
 * is a patch of the source, created with `git diff`. The lines before the diff describe the bug and, after `Cases:`, list
 * the cases to explore.
 *
 *   npm run test:planted -- [--patches <folder>] [--for <seconds>] [--sound] [--write] [name...]
 *
 * `--sound` also runs the same searches without a bug, which must find nothing. `--write` saves the table in
 * bench/RESULTS.md.
 */
import { readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { basename, join, resolve } from 'node:path';
import { fileURLToPath } from 'node:url';
import { parseArgs } from 'node:util';
import { plantedHeading, publishedHeading, withSection } from '../../bench/lib/kept-section.ts';
import { machine } from '../../bench/lib/machine.ts';
import { compileSource, makeCopy, makeFolder } from '../mutations/copy.ts';
import { exploreCopy, type Failure, type Searches } from './explore-copy.ts';
import { type Patch, plant } from './plant.ts';
import { lineOf, type Row, tableOf } from './table.ts';

const here = fileURLToPath(new URL('.', import.meta.url));
/** Searches for a patch without `Cases:`. */
const usual = {
  glances: [
    'workers/until_idle',
    'workers/concurrent_workers --crashes',
    'workers/verify_fails',
    'workers/landing_parked',
    'workers/lost_race',
    'workers/until_idle --faults',
  ],
  searches: ['workers/until_idle', 'workers/concurrent_workers --crashes'],
};
/** A minimized schedule with more switches is too long to read. */
const mostSwitches = 12;

const { values, positionals } = parseArgs({
  allowPositionals: true,
  options: {
    patches: { type: 'string', default: join(here, 'patches') },
    for: { type: 'string', default: '60' },
    sound: { type: 'boolean', default: false },
    write: { type: 'boolean', default: false },
  },
});
const seconds = Number(values.for);
const folder = makeFolder();
process.once('exit', () => rmSync(folder, { recursive: true, force: true, maxRetries: 3 }));
for (const signal of ['SIGINT', 'SIGTERM'] as const) process.once(signal, () => process.exit(130));

process.exitCode = await run();

async function run(): Promise<number> {
  const patches = readPatches(resolve(values.patches));
  if (patches.length === 0) {
    console.error(`no patches in ${values.patches}`);
    return 1;
  }
  const copy = makeCopy({ folder, name: 'copy', dist: compileSource(folder) });
  const rows: Row[] = [];
  for (const patch of patches) {
    const revert = plant(copy, patch);
    const found = await exploreCopy(copy, { ...patch, seconds });
    revert();
    const row = { name: patch.name, ...found };
    rows.push(row);
    console.log(lineOf(row));
  }
  const summary = summaryOf(rows);
  console.log(`\n${tableOf(rows)}\n\n${summary}`);
  const sound = values.sound ? await exploreSound(copy, patches) : [];
  if (values.write) keep([tableOf(rows), summary, ...sound.map(({ line }) => line)]);
  return rows.every(meetsTarget) && sound.every(({ failure }) => !failure) ? 0 : 1;
}

function meetsTarget({ failure, isDrift, seconds: taken }: Row): boolean {
  if (!failure || isDrift) return false;
  return taken <= seconds && (failure.switches ?? Number.POSITIVE_INFINITY) <= mostSwitches;
}

function summaryOf(rows: readonly Row[]): string {
  const found = rows.filter(({ failure }) => failure).length;
  const good = rows.filter(meetsTarget).length;
  return `${found} of ${rows.length} planted bugs found; ${good} of them within ${seconds} s and with at most ${mostSwitches} switches.`;
}

interface SearchedPatch extends Patch, Searches {}

interface Sound {
  readonly failure: Failure | undefined;
  readonly line: string;
}

/** Runs the same searches without a bug. They must find nothing. */
async function exploreSound(copy: string, patches: readonly SearchedPatch[]): Promise<readonly Sound[]> {
  const searches = new Map(patches.map(patch => [JSON.stringify([patch.glances, patch.searches]), patch]));
  const rows: Sound[] = [];
  for (const patch of searches.values()) {
    const { failure, isDrift, schedules, search } = await exploreCopy(copy, { ...patch, seconds });
    const found = failure
      ? `**${failure.what}: ${failure.message}**${isDrift ? ' (in memory only)' : ''}`
      : 'nothing found';
    const line = `Without a bug, ${search}: ${found} in ${schedules} schedules.`;
    console.log(line);
    rows.push({ failure, line });
  }
  return rows;
}

function keep(parts: readonly string[]): void {
  const file = join(here, '..', '..', 'bench', 'RESULTS.md');
  const command = ['npm run test:planted --', ...process.argv.slice(2)].join(' ');
  const taken = `\`${command}\`, ${new Date().toISOString().slice(0, 10)}\n\n${machine()}`;
  const note =
    'Each bug is planted on its own. Seconds include finding the failure, minimizing it and confirming it on real git. Switches are the switches between commands in the minimized schedule, counted where commands access the same state.';
  const body = [taken, note, ...parts].join('\n\n');
  const text = readFileSync(file, 'utf8');
  writeFileSync(file, withSection(text, { heading: plantedHeading, body, before: publishedHeading }));
}

function readPatches(from: string): readonly SearchedPatch[] {
  return readdirSync(from)
    .filter(file => file.endsWith('.patch') || file.endsWith('.diff'))
    .sort()
    .map(file => ({ file: join(from, file), text: readFileSync(join(from, file), 'utf8') }))
    .map(({ file, text }) => ({
      name: basename(file).replace(/\.(patch|diff)$/, ''),
      file,
      text,
      ...(searchesIn(text) ?? usual),
    }))
    .filter(({ name }) => positionals.length === 0 || positionals.some(part => name.includes(part)));
}

/** Reads `Cases: one; another --crashes` before the diff. */
function searchesIn(text: string): Searches | undefined {
  const [, list] = /^Cases: (.+)$/m.exec(text) ?? [];
  const searches = list?.split(';').map(each => each.trim());
  return searches && { searches, glances: searches.length > 2 ? searches : [] };
}
