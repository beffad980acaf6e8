/**
 * Ink is slow to load, so only who wants a live view pays for it. React looks at NODE_ENV while it is loaded, and its
 * development build keeps a measurement of every frame for ever.
 */
export async function importScreen(): Promise<typeof import('../terminal/screen.ts')> {
  const { env } = process;
  const before = env['NODE_ENV'];
  env['NODE_ENV'] = 'production';
  try {
    return await import('../terminal/screen.ts');
  } finally {
    if (before === undefined) delete env['NODE_ENV'];
    else env['NODE_ENV'] = before;
  }
}

/** Calls `tick` again and again until what it gives back is called. Keeps no process alive. */
export type Every = (ms: number, tick: () => void) => () => void;

export const everyInterval: Every = (ms, tick) => {
  const timer = setInterval(tick, ms);
  timer.unref();
  return () => clearInterval(timer);
};
