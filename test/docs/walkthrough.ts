import { spawnSync } from 'node:child_process';
import { chmodSync, mkdirSync, mkdtempSync, readFileSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join, resolve } from 'node:path';
import { type Block, blocksOf, type Page } from './documents.ts';

/** What a page leaves to its reader. Blocks are named by their first line. */
export interface PagePlan {
  /** Commands that create the project that the page assumes. */
  readonly setup?: string;
  /** Paths of files that the page shows without their path. */
  readonly files?: Readonly<Record<string, string>>;
  /** Commands for what the page asks for in prose before a block. They run in the same shell as the block. */
  readonly before?: Readonly<Record<string, string>>;
  /** Exit codes of first commands that do not exit with 0. */
  readonly exits?: Readonly<Record<string, number>>;
  /** Values of placeholders such as `<step>`. `<run>` is always the newest run. */
  readonly placeholders?: Readonly<Record<string, string>>;
  /** Reasons why no test runs a block. */
  readonly exempt?: Readonly<Record<string, string>>;
}

/** One action of the reader of a page: writes a file, or types commands and compares their output. */
export type Action =
  | { readonly kind: 'write'; readonly place: string; readonly file: string; readonly text: string }
  | {
      readonly kind: 'type';
      readonly place: string;
      readonly script: string;
      readonly shown: string | undefined;
    };

const shellLanguages = new Set(['sh', 'bash', 'shell', 'console']);

export const shellBlocksOf = (page: Page): readonly Block[] =>
  blocksOf(page).filter(({ language }) => shellLanguages.has(language));

export const firstLineOf = (text: string): string => text.split('\n')[0] ?? '';

/**
 * A block whose first line is a comment with a path is a file. A `sh` block is typed, and a `text` block right after it is
 * its output. All other blocks are only read.
 */
export function actionsOf(page: Page, plan: PagePlan = {}): readonly Action[] {
  const blocks = blocksOf(page);
  return blocks.flatMap(({ place, language, text }, index): Action | readonly [] => {
    const first = firstLineOf(text);
    if (!shellLanguages.has(language)) {
      const file = /^(?:#|\/\/) ([\w./-]+\.\w+)$/.exec(first)?.[1] ?? plan.files?.[first];
      return file === undefined ? [] : { kind: 'write', place, file, text };
    }
    if (plan.exempt?.[first] !== undefined) return [];
    const next = blocks[index + 1];
    return {
      kind: 'type',
      place,
      script: scriptOf(text, plan),
      shown: next?.language === 'text' ? next.text : undefined,
    };
  });
}

function scriptOf(text: string, { before, exits, placeholders = {} }: PagePlan): string {
  const first = firstLineOf(text);
  const code = exits?.[first];
  const expected = code === undefined ? text : `exits_with ${code} ${text}`;
  return Object.entries(placeholders).reduce(
    (script, [name, value]) => script.replaceAll(name, value),
    before?.[first] === undefined ? expected : `${before[first]}\n${expected}`,
  );
}

/** Shell function that fails unless a command exits with the given code. */
const exitsWith =
  'exits_with() { local expected=$1 actual=0; shift; "$@" || actual=$?; [ $actual -eq $expected ]; }';

/** Carries out the actions of pages in an empty folder, with the built `reprise` on the PATH. */
export class Reader {
  readonly #home = mkdtempSync(join(tmpdir(), 'reprise-guide-'));
  #folder = join(this.#home, 'project');
  #lastRun = '';

  constructor() {
    const bin = join(this.#home, 'bin');
    for (const folder of [bin, this.#folder]) mkdirSync(folder);
    const cli = `"${process.execPath}" "${resolve('dist/cli/main.js')}"`;
    const programs = {
      reprise: `exec ${cli} "$@"`,
      'newest-run': `${cli} list --json --limit 1 | sed 's/.*"id":"\\([^"]*\\)".*/\\1/'`,
    };
    for (const [name, script] of Object.entries(programs)) {
      writeFileSync(join(bin, name), `#!/bin/sh\n${script}\n`);
      chmodSync(join(bin, name), 0o755);
    }
    const gitConfig =
      '[user]\nname = Reader\nemail = reader@example.com\n[core]\nexcludesFile = ~/.gitignore\n';
    writeFileSync(join(this.#home, '.gitconfig'), gitConfig);
    writeFileSync(join(this.#home, '.gitignore'), 'node_modules\n');
    const packages = join(this.#folder, 'node_modules');
    mkdirSync(packages);
    symlinkSync(resolve('.'), join(packages, 'reprise'));
    for (const name of ['vitest', 'zod', '.bin'])
      symlinkSync(resolve('node_modules', name), join(packages, name));
  }

  write(file: string, text: string): void {
    mkdirSync(dirname(join(this.#folder, file)), { recursive: true });
    writeFileSync(join(this.#folder, file), text);
  }

  /** Runs a script in the folder in which the last one ended. Stops at the first failing command if `strict`. */
  type(
    script: string,
    { strict = false } = {},
  ): { readonly output: string; readonly exitCode: number | null } {
    const folderFile = join(this.#home, 'folder');
    const lines = [
      'exec 2>&1',
      exitsWith,
      `trap 'pwd > "${folderFile}"' EXIT`,
      strict ? 'set -e' : '',
      script.replaceAll(/<run>|\bk3v9m2xq7d\b/g, '$(newest-run)'),
    ];
    const { stdout, status } = spawnSync('bash', ['-c', lines.join('\n')], {
      cwd: this.#folder,
      encoding: 'utf8',
      env: {
        ...withoutSettings(process.env),
        HOME: this.#home,
        NO_COLOR: '1',
        CHECKOUT: process.cwd(),
        PATH: `${this.#home}/bin:${process.env['PATH']}`,
      },
    });
    this.#folder = readFileSync(folderFile, 'utf8').trim();
    this.#lastRun = /run ([0-9a-z]{10}) started/.exec(stdout)?.[1] ?? this.#lastRun;
    return {
      output: this.#lastRun === '' ? stdout : stdout.replaceAll(this.#lastRun, runInPages),
      exitCode: status,
    };
  }

  leave(): void {
    rmSync(this.#home, { recursive: true, force: true });
  }
}

/** Run id that the pages show. */
const runInPages = 'k3v9m2xq7d';

/** Environment of a user's terminal, without the variables that CI and Vitest set. */
const withoutSettings = (env: NodeJS.ProcessEnv): NodeJS.ProcessEnv =>
  Object.fromEntries(
    Object.entries(env).filter(([name]) => !/^(CI$|GIT_|REPRISE_|VITEST|NODE_|FORCE_COLOR$|npm_)/.test(name)),
  );

/**
 * Pattern for an output as a page shows it. `…` stands for the rest of a line, or alone on a line for any number of lines.
 * Times, commit ids and positions may differ.
 */
export function patternOf(shown: string): RegExp {
  const lines = steady(shown).map(line =>
    line === '…' ? '(?:.*\\n)*?' : `${line.split('…').map(escaped).join('.*?')}\\n`,
  );
  return new RegExp(`^${lines.join('')}$`);
}

const escaped = (text: string): string => text.replace(/[\\^$.*+?()[\]{}|/]/g, '\\$&');

/** Output without the values that differ between runs. */
export const steadyText = (output: string): string => `${steady(output).join('\n')}\n`;

const steady = (output: string): readonly string[] =>
  output
    .trim()
    .replace(/\b\d+(?:\.\d+)?(?:ms|s)\b/g, '1s')
    .replace(/\b\d\d:\d\d:\d\d\b/g, '00:00:00')
    .replace(/\b[0-9a-f]{10,64}\b/g, 'c0ffee')
    .replace(/\b([in]) \d+( of \d+)?/g, '$1 1')
    .replace(/:\d+\b/g, ':1')
    .replace(/^( *(?:before that +)?)\d+ (?=[\w-]+[/ ])/gm, '$11 ')
    .replace(/\b\d+ (earlier|later)/g, '1 $1')
    .split('\n')
    .map(line => line.replace(/\s+/g, ' ').trim());
