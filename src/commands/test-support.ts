import { mkdirSync, mkdtempSync, realpathSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { onTestFinished } from 'vitest';
import type { CommandIo } from '../project/host.ts';

/** Creates a temporary folder with the given files. It is removed when the test ends. */
export function temporaryProject(files: Readonly<Record<string, string>> = {}): string {
  const root = realpathSync(mkdtempSync(join(tmpdir(), 'reprise-command-')));
  onTestFinished(() => rmSync(root, { recursive: true, force: true }));
  mkdirSync(join(root, '.reprise'));
  for (const [name, text] of Object.entries(files)) {
    mkdirSync(dirname(join(root, name)), { recursive: true });
    writeFileSync(join(root, name), text);
  }
  return root;
}

/** A `CommandIo` without a terminal that captures what is printed. */
export function testIo(
  cwd: string,
  more: Partial<CommandIo> = {},
): CommandIo & { readonly printed: { out: string; err: string } } {
  const printed = { out: '', err: '' };
  return {
    printed,
    out: text => {
      printed.out += text;
    },
    err: text => {
      printed.err += text;
    },
    stdin: (async function* () {})(),
    isTTY: { stdin: false, stdout: false, stderr: false },
    columns: 80,
    color: { out: false, err: false },
    env: { PATH: process.env['PATH'], USER: 'ana' },
    cwd,
    now: () => Date.now(),
    interrupt: new AbortController().signal,
    ...more,
  };
}
