/**
 * Runs every example in a temporary copy, as a user would, and checks the results. Uses the build: run `npm run build`
 * first. Arguments select examples by name.
 */
import { execFileSync } from 'node:child_process';
import { appendFileSync, cpSync, mkdirSync, mkdtempSync, readdirSync, rmSync, symlinkSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { checks } from './examples/checks.ts';
import { commandsIn } from './examples/commands.ts';

const root = fileURLToPath(new URL('..', import.meta.url));
const examples = join(root, 'examples');
/** Packages that the examples import. */
const packages = { reprise: root, zod: join(root, 'node_modules', 'zod') };

/** Copies an example into a new repository. Without one, a folder above the temporary folder could become its project. */
function copyOf(name: string): string {
  const folder = mkdtempSync(join(tmpdir(), `reprise-example-${name}-`));
  cpSync(join(examples, name), folder, { recursive: true });
  commitAll(folder);
  mkdirSync(join(folder, 'node_modules'));
  for (const [name, target] of Object.entries(packages))
    symlinkSync(target, join(folder, 'node_modules', name), 'dir');
  return folder;
}

function commitAll(folder: string): void {
  const git = (...args: string[]) => execFileSync('git', args, { cwd: folder, stdio: 'pipe' });
  git('init', '--quiet', '--initial-branch=main');
  git('config', 'user.name', 'Example');
  git('config', 'user.email', 'example@example.com');
  git('config', 'commit.gpgsign', 'false');
  appendFileSync(join(folder, '.git', 'info', 'exclude'), 'node_modules\n');
  git('add', '.');
  git('commit', '--quiet', '--message', 'Begin');
}

async function run(name: string): Promise<boolean> {
  const folder = copyOf(name);
  try {
    await checks[name]?.(commandsIn(folder, join(root, 'dist', 'cli', 'main.js')));
    console.log(`ok ${name}`);
    return true;
  } catch (error) {
    console.error(`failed ${name}\n${error instanceof Error ? error.stack : error}`);
    return false;
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
}

const folders = readdirSync(examples, { withFileTypes: true }).filter(entry => entry.isDirectory());
const names = process.argv.length > 2 ? process.argv.slice(2) : folders.map(({ name }) => name);
const unchecked = names.filter(name => !Object.hasOwn(checks, name));
if (unchecked.length > 0)
  throw new Error(`no check for ${unchecked.join(', ')}: add it to scripts/examples/checks.ts`);

let good = true;
for (const name of names) good = (await run(name)) && good;
process.exitCode = good ? 0 : 1;
