/** A stream that whoever reads it may close early: what is written after that goes nowhere. */
export interface QuietWriter {
  readonly write: (text: string) => void;
  /** Resolves when all of it has been handed over. */
  flushed(): Promise<void>;
}

/** `reprise list | head -1` is no reason to complain, and watching a run is no reason to stop it. */
export function quietWriter(stream: NodeJS.WriteStream): QuietWriter {
  let closed = false;
  stream.on('error', error => {
    closed = true;
    // Nobody reads the pipe, or the terminal is gone.
    if (!('code' in error) || (error.code !== 'EPIPE' && error.code !== 'EIO')) throw error;
  });
  return {
    write: text => {
      if (!closed) stream.write(text);
    },
    flushed: () =>
      new Promise(resolve => {
        if (closed) resolve();
        else stream.write('', () => resolve());
      }),
  };
}
