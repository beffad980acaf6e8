import { chmodSync, mkdirSync, realpathSync, renameSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { dirname } from 'node:path';

/** Makes a file with its folders. One that has come into being meanwhile is not overwritten, and none is left half written. */
export function makeFile(file: string, text: string): void {
  mkdirSync(dirname(file), { recursive: true });
  writeFileSync(file, '', { flag: 'wx' });
  try {
    writeFileSync(file, text);
  } catch (error) {
    rmSync(file, { force: true });
    throw error;
  }
}

/** Puts another text into a file at once: there is always one of the two. A link stays a link. */
export function replaceFile(file: string, text: string): void {
  const target = realpathSync(file);
  const beside = `${target}.reprise-new`;
  try {
    writeFileSync(beside, text);
    chmodSync(beside, statSync(target).mode);
    renameSync(beside, target);
  } catch (error) {
    rmSync(beside, { force: true });
    throw error;
  }
}
