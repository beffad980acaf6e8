import type { Json } from '../../core/json.ts';
import type { Scope, StepContext } from '../model.ts';

/** Returns a scope in which the given steps succeeded, and those with `undefined` were skipped. */
export function scopeOf(outputs: Readonly<Record<string, Json | undefined>>, inputs: Json = {}): Scope {
  const steps = Object.fromEntries(
    Object.entries(outputs).map(([id, output]) => {
      const end = output === undefined ? 'skipped' : 'success';
      return [id, { outcome: end, conclusion: end, outputs: output } as const];
    }),
  );
  return { inputs, steps, status: 'success' };
}

export function contextOf(input: Json = {}): StepContext {
  return {
    runId: 'run',
    step: 'step',
    input,
    attempt: 1,
    signal: new AbortController().signal,
    sleep: async () => {},
    waitForSignal: () => Promise.reject(new Error('signals are not supported in this test')),
    log: () => {},
  };
}
