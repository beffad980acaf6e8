import { spawnSync } from 'node:child_process';
import { chmodSync, mkdirSync, mkdtempSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join, resolve } from 'node:path';
import { blocksOf, type Page } from './documents.ts';

/** One thing that a reader of a page does: write a file, or type commands and look at what they print. */
export type Action =
  | { readonly kind: 'write'; readonly place: string; readonly file: string; readonly text: string }
  | {
      readonly kind: 'type';
      readonly place: string;
      readonly script: string;
      readonly shown: string | undefined;
    };

/**
 * A block whose first line is a comment with a path is a file. `sh` is typed, and `text` right after it is what it
 * prints. Everything else is only read.
 */
export function actionsOf(page: Page): readonly Action[] {
  const blocks = blocksOf(page);
  return blocks.flatMap(({ place, language, text }, index): Action | readonly [] => {
    const file = /^(?:#|\/\/) ([\w./-]+\.\w+)\n/.exec(text)?.[1];
    if (language !== 'sh') return file === undefined ? [] : { kind: 'write', place, file, text };
    const next = blocks[index + 1];
    return { kind: 'type', place, script: text, shown: next?.language === 'text' ? next.text : undefined };
  });
}

/** Where the actions of one page are carried out: an empty folder in which `reprise` is what was built. */
export class Reader {
  readonly #home = mkdtempSync(join(tmpdir(), 'reprise-guide-'));
  readonly #folder = join(this.#home, 'project');
  #lastRun = '';

  constructor() {
    const bin = join(this.#home, 'bin');
    for (const folder of [bin, this.#folder]) mkdirSync(folder);
    const reprise = join(bin, 'reprise');
    writeFileSync(reprise, `#!/bin/sh\nexec "${process.execPath}" "${resolve('dist/cli/main.js')}" "$@"\n`);
    chmodSync(reprise, 0o755);
    writeFileSync(join(this.#home, '.gitconfig'), '[user]\nname = Reader\nemail = reader@example.com\n');
    const packages = join(this.#folder, 'node_modules');
    mkdirSync(packages);
    symlinkSync(resolve('.'), join(packages, 'reprise'));
    symlinkSync(resolve('node_modules/vitest'), join(packages, 'vitest'));
    symlinkSync(resolve('node_modules/.bin'), join(packages, '.bin'));
  }

  write(file: string, text: string): void {
    mkdirSync(dirname(join(this.#folder, file)), { recursive: true });
    writeFileSync(join(this.#folder, file), text);
  }

  /** `<run>` is the run that was started last. */
  type(script: string): { readonly output: string; readonly exitCode: number | null } {
    const { stdout, status } = spawnSync(
      'bash',
      ['-c', `exec 2>&1\n${script.replaceAll('<run>', this.#lastRun)}`],
      {
        cwd: this.#folder,
        encoding: 'utf8',
        env: {
          ...withoutSettings(process.env),
          HOME: this.#home,
          NO_COLOR: '1',
          PATH: `${this.#home}/bin:${process.env['PATH']}`,
        },
      },
    );
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

/** What pages call a run. */
const runInPages = 'k3v9m2xq7d';

/** As somebody's own terminal is: CI and Vitest set variables that commands look at. */
const withoutSettings = (env: NodeJS.ProcessEnv): NodeJS.ProcessEnv =>
  Object.fromEntries(
    Object.entries(env).filter(([name]) => !/^(CI$|GIT_|REPRISE_|VITEST|NODE_|FORCE_COLOR$|npm_)/.test(name)),
  );

/**
 * A pattern for an output as a page shows it. `…` stands for the rest of a line, or alone on a line for any lines;
 * times, ids of commits and positions may be any.
 */
export function patternOf(shown: string): RegExp {
  const lines = steady(shown).map(line =>
    line === '…' ? '(?:.*\\n)*?' : `${line.split('…').map(escaped).join('.*?')}\\n`,
  );
  return new RegExp(`^${lines.join('')}$`);
}

const escaped = (text: string): string => text.replace(/[\\^$.*+?()[\]{}|/]/g, '\\$&');

/** An output without what is another one each time. */
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
