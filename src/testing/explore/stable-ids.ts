import { createHash } from 'node:crypto';
import type { Ids } from '../../core/time.ts';

/**
 * Names that depend on nothing but who asks, and how often: in every schedule the first run of a step has the same. Whether
 * an incarnation is alive is asked of the whole process: it also has the name of the place in which it is played.
 */
export function stableIds(step: string, place = ''): Ids {
  let asked = 0;
  const next = (kind: string): string =>
    createHash('sha256').update(`${kind} ${step} ${asked++}`).digest('hex');
  return {
    runId: () => next('run').slice(0, 10),
    incarnation: () => `${next('incarnation').slice(0, 16)}${place}`,
    sessionId: () => {
      const hex = next('session');
      return [
        hex.slice(0, 8),
        hex.slice(8, 12),
        `4${hex.slice(13, 16)}`,
        `8${hex.slice(17, 20)}`,
        hex.slice(20, 32),
      ].join('-');
    },
  };
}
