import { execFile } from 'node:child_process';
import { mkdirSync, mkdtempSync, realpathSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join, resolve } from 'node:path';

export interface Ended {
  readonly code: number;
  readonly stdout: string;
  readonly stderr: string;
}

/** A temporary project with Reprise installed. */
export interface Project {
  readonly root: string;
  write(files: Readonly<Record<string, string>>): void;
  /** Runs `node` in the project. */
  node(args: readonly string[], env?: Readonly<Record<string, string>>): Promise<Ended>;
  reprise(args: readonly string[], env?: Readonly<Record<string, string>>): Promise<Ended>;
  remove(): void;
}

export function createProject(files: Readonly<Record<string, string>>): Project {
  const root = realpathSync(mkdtempSync(join(tmpdir(), 'reprise-entry-')));
  const write = (more: Readonly<Record<string, string>>) => {
    for (const [name, text] of Object.entries(more)) {
      mkdirSync(dirname(join(root, name)), { recursive: true });
      writeFileSync(join(root, name), text);
    }
  };
  write(files);
  mkdirSync(join(root, 'node_modules'));
  symlinkSync(resolve('.'), join(root, 'node_modules', 'reprise'));
  const node = (args: readonly string[], env: Readonly<Record<string, string>> = {}) =>
    new Promise<Ended>(done => {
      const environment = { PATH: process.env['PATH'], HOME: root, LANG: 'C.UTF-8', NO_COLOR: '1', ...env };
      execFile(process.execPath, args, { cwd: root, env: environment }, (error, stdout, stderr) =>
        done({ code: error ? Number(error.code) : 0, stdout, stderr }),
      );
    });
  return {
    root,
    write,
    node,
    reprise: (args, env) => node([resolve('dist/cli/main.js'), ...args], env),
    remove: () => rmSync(root, { recursive: true, force: true, maxRetries: 3 }),
  };
}

/** Steps that run one after another. The first fails, so no other step is recorded. */
const releaseCase = `
[run]
args = ["release", "--max-concurrent", "1"]
expect = { exit = 1 }

[files]
".reprise/workflows/release.yaml" = '''
name: release
steps:
  - { id: build, run: "echo broken; exit 3" }
  - { id: publish, needs: [build], run: "echo published" }
  - { id: lint, run: "echo linted" }
'''
`;

/** A function with a random result, which only a tape can repeat. */
const quoteCase = `
[run]
args = ["quote"]

[files]
".reprise/workflows/quote.mjs" = '''
import { step, workflow } from 'reprise';
const price = step('price', { run: () => ({ cents: Math.random() }) });
const total = step('total', { after: { price }, run: ({ price }) => ({ total: price.cents * 2 }) });
export default workflow('quote', { steps: [price, total] });
'''
`;

const caseFiles = {
  'cases/release/release.toml': releaseCase,
  'cases/quote/quote.toml': quoteCase,
};

/** Creates a project and records both cases. */
export async function recordedProject(): Promise<Project> {
  const project = createProject(caseFiles);
  const { code, stdout, stderr } = await project.reprise(['test', '--record']);
  if (code === 0) return project;
  project.remove();
  throw new Error(`recording failed:\n${stdout}${stderr}`);
}
