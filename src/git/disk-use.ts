import { lstat, readdir } from 'node:fs/promises';
import { join } from 'node:path';

/** Bytes that a folder takes on the disk; files with several names in it count once. What cannot be read is left out. */
export async function diskUse(folder: string): Promise<number> {
  const seen = new Set<string>();
  const waiting = [folder];
  let bytes = 0;
  for (let path = waiting.pop(); path !== undefined; path = waiting.pop()) {
    const stat = await lstat(path).catch(() => undefined);
    if (stat === undefined) continue;
    const inode = `${stat.dev}:${stat.ino}`;
    if (stat.nlink > 1 && !stat.isDirectory() && seen.has(inode)) continue;
    seen.add(inode);
    bytes += stat.blocks * 512;
    if (!stat.isDirectory()) continue;
    for (const name of await readdir(path).catch(() => [])) waiting.push(join(path, name));
  }
  return bytes;
}
