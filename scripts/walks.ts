/**
 * Measures how many modules a reader walks through: those in which a function runs during a command, and those that make up
 * one mechanism. Runs real commands under V8's coverage and compares the counts with their limits.
 */
import { execFileSync, spawnSync } from 'node:child_process';
import {
  cpSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { rolldown } from 'rolldown';
import { bundleOptions } from './build/package.ts';

const root = join(import.meta.dirname, '..');
const scratch = mkdtempSync(join(tmpdir(), 'reprise-walks-'));
const build = join(scratch, 'build');
const main = join(build, 'src/cli/main.js');

/** The package as it ships, doors resolved, but with one file per source module. */
async function buildModules(): Promise<void> {
  const bundle = await rolldown({ ...bundleOptions });
  try {
    await bundle.write({
      dir: join(build, 'src'),
      preserveModules: true,
      preserveModulesRoot: join(root, 'src'),
    });
  } finally {
    await bundle.close();
  }
  cpSync(join(root, 'package.json'), join(build, 'package.json'));
  symlinkSync(join(root, 'node_modules'), join(build, 'node_modules'));
}

interface Coverage {
  readonly result: readonly {
    readonly url: string;
    readonly functions: readonly { readonly ranges: readonly { readonly count: number }[] }[];
  }[];
}

interface Walk {
  readonly loaded: ReadonlySet<string>;
  /** Modules in which a function other than the module itself was called. */
  readonly ran: ReadonlySet<string>;
}

let walks = 0;

const walk = (cwd: string, ...args: readonly string[]): Walk => walkOf(cwd, [main, ...args]);

/** Runs Node with these arguments and returns the modules of `src/` that it needed, child processes included. */
function walkOf(cwd: string, args: readonly string[]): Walk {
  const coverage = join(scratch, `coverage-${walks++}`);
  const env = { ...process.env, NODE_V8_COVERAGE: coverage, NO_COLOR: '1' };
  const { status, stdout, stderr } = spawnSync(process.execPath, args, {
    cwd,
    env,
    encoding: 'utf8',
  });
  if (status !== 0) throw new Error(`node ${args.join(' ')} ended with ${status}:\n${stdout}${stderr}`);
  const loaded = new Set<string>();
  const ran = new Set<string>();
  for (const file of readdirSync(coverage)) {
    const { result } = JSON.parse(readFileSync(join(coverage, file), 'utf8')) as Coverage;
    for (const { url, functions } of result) {
      if (!url.startsWith('file://')) continue;
      const path = fileURLToPath(url);
      if (!path.startsWith(`${build}/src/`)) continue;
      const module = path.slice(build.length + '/src/'.length, -'.js'.length);
      loaded.add(module);
      if (functions.slice(1).some(({ ranges }) => (ranges[0]?.count ?? 0) > 0)) ran.add(module);
    }
  }
  return { loaded, ran };
}

const agent = `\
kind: scripted
script:
  - write: { path: work.txt, content: "done\\n" }
  - say: finished
`;

const twoShellSteps = `\
name: greet
steps:
  - id: hello
    run: echo hello
  - id: world
    needs: [hello]
    run: echo world
`;

const oneAgentStep = `\
name: work
steps:
  - id: work
    agent: writer
    prompt: Write a file.
`;

/** A repository with one commit, two workflows and a scripted agent. */
function makeProject(): string {
  const folder = join(scratch, 'project');
  const files = {
    'greet.yaml': twoShellSteps,
    'work.yaml': oneAgentStep,
    'reprise.yaml': `agents:\n  writer:\n${agent.replace(/^/gm, '    ').trimEnd()}\n`,
    '.gitignore': '.reprise/\n',
  };
  for (const [name, text] of Object.entries(files)) {
    mkdirSync(dirname(join(folder, name)), { recursive: true });
    writeFileSync(join(folder, name), text);
  }
  const git = (...args: readonly string[]) => execFileSync('git', args, { cwd: folder, stdio: 'pipe' });
  git('init', '-q', '-b', 'main');
  git('config', 'user.name', 'Walker');
  git('config', 'user.email', 'walker@example.com');
  git('add', '-A');
  git('commit', '-q', '-m', 'Begin');
  return folder;
}

function newestRun(cwd: string): string {
  const lines = execFileSync(process.execPath, [main, 'list', '--json'], { cwd, encoding: 'utf8' });
  const [newest = ''] = lines.split('\n');
  return (JSON.parse(newest) as { readonly id: string }).id;
}

/** The modules of `room` that the modules in `folder` import, and the modules in `folder`. */
function withImports(folder: string, room: string): ReadonlySet<string> {
  const modules = readdirSync(join(build, 'src', folder), { encoding: 'utf8' })
    .filter(file => file !== 'index.js')
    .map(file => join(folder, file));
  const read = new Set(modules);
  for (const module of modules) {
    const text = readFileSync(join(build, 'src', module), 'utf8');
    for (const [, specifier = ''] of text.matchAll(/ from "(\..+?)"/g)) {
      const imported = join(dirname(module), specifier);
      if (imported.startsWith(`${room}/`)) read.add(imported);
    }
  }
  return read;
}

await buildModules();
try {
  const project = makeProject();
  const run = walk(project, 'run', 'greet.yaml');
  const agentStep = walk(project, 'run', 'work.yaml');
  const land = walk(project, 'land', newestRun(project));
  const replay = walk(root, 'test', 'workers/worker_basic');
  const library = walkOf(build, ['--input-type=module', '--eval', "await import('./src/index.js')"]);
  const rows: readonly (readonly [what: string, measured: number, limit: number])[] = [
    ['modules that run: `reprise run` with two shell steps', run.ran.size, 120],
    ['modules that run: an agent step', agentStep.ran.size, 155],
    ['modules that run: `reprise land`', land.ran.size, 62],
    ['modules that run: `reprise test` with one case', replay.ran.size, 190],
    ['modules that `import "reprise"` links', library.loaded.size, 70],
    ['files to read: a landing', withImports('git/landing', 'git').size, 14],
    ['files to read: the run loop', withImports('engine/run', 'engine').size, 13],
  ];
  for (const [what, measured, limit] of rows) {
    console.log(`${what}: ${measured}, at most ${limit}`);
    if (measured > limit) process.exitCode = 1;
  }
} finally {
  rmSync(scratch, { recursive: true, force: true });
}
