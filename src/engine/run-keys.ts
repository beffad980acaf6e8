import { toEpochMs } from '../core/time.ts';
import type { Keys } from '../effects/effect.ts';
import type { Batch, EventStore, RunStatus } from '../store/port.ts';
import { outcomeOf } from '../store/runs.ts';
import type { Environment } from './environment.ts';

interface Release {
  readonly runId: string;
  readonly status: RunStatus | undefined;
}

/**
 * The keys of what changes how a run stands. Others see most of that only by what depends on it: a claim of the run that
 * counts no more, or a run that nobody is at work on. What these are now is asked when the effect is: only the run
 * itself changes them before it is done, or time does, which has a key of its own.
 */
export function runKeys({ store, clock }: Pick<Environment, 'store' | 'clock'>) {
  const claims = (runId: string): readonly string[] => keysOfClaims(store, runId);

  /** Whoever lets its lease run out, and goes on, takes back what was abandoned. */
  const isOut = (runId: string): boolean => {
    const owner = store.glance?.ownerOf(runId);
    return !owner || toEpochMs(owner.expiresAt) <= clock.now();
  };
  const abandoned = (runId: string, isLeft: boolean): readonly string[] =>
    isLeft || isOut(runId) ? [`abandoned:${runId}`] : [];

  return {
    create: ({ runId }: { readonly runId: string }): Keys => ({
      writes: [`store:${runId}`, `lease:${runId}`, `status:${runId}`],
    }),

    acquire: ({ runId }: { readonly runId: string }): Keys => ({
      writes: [`lease:${runId}`, `abandoned:${runId}`],
    }),

    renew: ({ runId }: { readonly runId: string }): Keys => ({
      writes: [`lease:${runId}`, ...abandoned(runId, false)],
    }),

    release: ({ runId, status }: Release): Keys => ({
      writes: [
        `lease:${runId}`,
        ...(status === undefined ? [] : [`status:${runId}`, ...claims(runId)]),
        ...abandoned(runId, status === undefined || status === 'running'),
      ],
    }),

    append: ({ runId, at, events, consumed = [] }: Batch): Keys => ({
      reads: [`lease:${runId}`],
      writes: [
        `store:${runId}`,
        ...(outcomeOf(events, at) ? [`status:${runId}`, ...claims(runId), ...abandoned(runId, false)] : []),
        ...(consumed.length > 0 ? [`inbox:${runId}`] : []),
      ],
    }),
  };
}

/** Of the claims that a run has; of all where that cannot be told at once. */
export const keysOfClaims = ({ glance }: Pick<EventStore, 'glance'>, runId: string): readonly string[] =>
  glance ? glance.tasksOf(runId).map(task => `claim:${task}`) : ['claim:'];
