import { execFileSync } from 'node:child_process';
import { mkdirSync, mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { it, onTestFinished } from 'vitest';

const isRoot = process.getuid?.() === 0;
const isRequired = process.env['REQUIRE_ROOT'] === '1';

if (!isRoot && !isRequired)
  console.info(
    'tests that mount file systems are skipped: run them as root; REQUIRE_ROOT=1 makes them fail instead',
  );

/** Declares a test that mounts file systems. Skipped without root, unless `REQUIRE_ROOT=1`. */
export function itAsRoot(name: string, body: () => Promise<void>): void {
  it.skipIf(!isRoot && !isRequired)(name, body);
}

export const sh = (command: string, ...args: readonly string[]): string =>
  execFileSync(command, args, { encoding: 'utf8', stdio: 'pipe' });

/** Makes a folder for mounts and images, and removes it after the test. Throws without root. */
export function mountLab(): {
  readonly folder: string;
  mount(name: string, ...args: readonly string[]): string;
  unmount(path: string): void;
} {
  if (!isRoot) throw new Error('this test mounts file systems, which only root may do');
  const folder = mkdtempSync(join(tmpdir(), 'reprise-mounts-'));
  const mounted = new Set<string>();
  const unmount = (path: string) => {
    sh('umount', path);
    mounted.delete(path);
  };
  onTestFinished(() => {
    for (const path of mounted) sh('umount', '--lazy', path);
    rmSync(folder, { recursive: true, force: true });
  });
  return {
    folder,
    mount: (name, ...args) => {
      const path = join(folder, name);
      mkdirSync(path, { recursive: true });
      sh('mount', ...args, path);
      mounted.add(path);
      return path;
    },
    unmount,
  };
}
