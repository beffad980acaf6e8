import { execFile } from 'node:child_process';
import { join } from 'node:path';

/** Explores cases in a copy, each for its part of the time, until something is found. */
export async function exploreCopy(copy, { searches, seconds }) {
  const began = performance.now();
  let schedules = 0;
  for (const search of searches) {
    const [name, ...options] = search.split(' ');
    const found = await explore(copy, name, [
      '--for',
      `${Math.ceil(seconds / searches.length)}s`,
      ...options,
    ]);
    schedules += found.worlds?.reduce((sum, world) => sum + world.schedules, 0) ?? 0;
    const { failure, drift } = found;
    const elapsed = (performance.now() - began) / 1000;
    if (failure || drift)
      return { failure: failure ?? drift.failure, isDrift: !failure, search, schedules, seconds: elapsed };
  }
  return { search: searches.join('; '), schedules, seconds: (performance.now() - began) / 1000 };
}

function explore(copy, name, options) {
  const program = join(copy, 'dist', 'cli', 'main.js');
  const args = [program, 'explore', name, '--json', '--dry-run', ...options];
  return new Promise((resolve, reject) => {
    execFile(process.execPath, args, { cwd: copy, maxBuffer: 2 ** 28 }, (error, stdout, stderr) => {
      try {
        resolve(JSON.parse(stdout));
      } catch {
        reject(new Error(`exploring ${name} printed no result:\n${stderr || error?.message}`));
      }
    });
  });
}
