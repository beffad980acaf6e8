/**
 * When it is decided who goes on. `turn`: when no microtask is left, so that every misuse of a lane is seen.
 * `microtask`: faster, and sees most.
 */
export type Pace = 'turn' | 'microtask';

export interface Pacer {
  /** Somebody may go on now. */
  arm(): void;
  /** A lane runs: it must be parked again when no microtask is left. */
  lanesRun(): void;
}

export interface PacerOptions {
  readonly pace: Pace;
  readonly decide: () => void;
  /** No microtask is left. */
  readonly turnIsOver: () => void;
}

/** With pace `microtask`, how many decisions are taken before the event loop gets a turn. */
const decisionsPerTurn = 1000;

export const createPacer = (options: PacerOptions): Pacer =>
  options.pace === 'turn' ? byTurns(options) : byMicrotasks(options);

/** One immediate for both. Never at once: an effect that completed in its call would hide a second one of its lane. */
function byTurns({ decide, turnIsOver }: PacerOptions): Pacer {
  const arm = once(setImmediate, () => {
    turnIsOver();
    decide();
  });
  return { arm, lanesRun: arm };
}

function byMicrotasks({ decide, turnIsOver }: PacerOptions): Pacer {
  let decisions = 0;
  const defer = (callback: () => void) => {
    if (++decisions % decisionsPerTurn === 0) setImmediate(callback);
    else queueMicrotask(callback);
  };
  return { arm: once(defer, decide), lanesRun: once(setImmediate, turnIsOver) };
}

/** Defers the callback, unless it is deferred already. */
function once(defer: (callback: () => void) => void, callback: () => void): () => void {
  let isArmed = false;
  const run = () => {
    isArmed = false;
    callback();
  };
  return () => {
    if (isArmed) return;
    isArmed = true;
    defer(run);
  };
}
