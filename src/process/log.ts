import { closeSync, mkdirSync, openSync, writeSync } from 'node:fs';
import { dirname } from 'node:path';

/** A log of what an agent or a script does, for people to read. A disk that is full must not end the work. */
export interface Log {
  append(text: string): void;
  close(): void;
}

export type OpenLog = (file: string) => Log;

/** The file and its folder are made when there is something to write. */
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

/** Keeps nothing: for worlds that are played a thousand times. */
export const noLog: OpenLog = () => ({ append: () => {}, close: () => {} });
