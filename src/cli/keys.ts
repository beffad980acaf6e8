import type { ReadStream } from 'node:tty';

/**
 * Calls back for every key that is pressed, without waiting for Enter, until what it gives back is called. Ctrl-C is then
 * a key like any other: whoever listens has to know it.
 */
export function listenToKeys(input: ReadStream, pressed: (key: string) => void): () => void {
  const hear = (keys: string | Buffer) => {
    for (const key of String(keys)) pressed(key);
  };
  input.setRawMode(true);
  input.on('data', hear);
  input.resume();
  return () => {
    input.off('data', hear);
    input.pause();
    input.setRawMode(false);
  };
}
