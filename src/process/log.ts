import { closeSync, mkdirSync, openSync, writeSync } from 'node:fs';
import { dirname } from 'node:path';

/** Readable log of an agent or a script. Write errors are ignored: a full disk must not stop the work. */
export interface Log {
  append(text: string): void;
  close(): void;
}

export type OpenLog = (file: string) => Log;

/** Opens a log file. The file and its folder are created at the first write. */
export const openLogFile: OpenLog = file => {
  let descriptor: number | undefined;
  return {
    append: text => {
      try {
        descriptor ??= opened(file);
        writeSync(descriptor, text);
      } catch {}
    },
    close: () => {
      if (descriptor !== undefined) closeSync(descriptor);
      descriptor = undefined;
    },
  };
};

function opened(file: string): number {
  mkdirSync(dirname(file), { recursive: true });
  return openSync(file, 'a');
}

/** Discards everything, for worlds that are executed thousands of times. */
export const noLog: OpenLog = () => ({ append: () => {}, close: () => {} });
