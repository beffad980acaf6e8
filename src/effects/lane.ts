import { RepriseError } from '../core/errors.ts';
import type { Entry, Lane } from '../world/lane.ts';
import { failed, type Outcome } from '../world/outcome.ts';
import type { EffectDefinition } from './effect.ts';
import type { LaneRef } from './world.ts';

const laneNames = (lanes: readonly LaneRef[]): readonly string[] => lanes.map(({ name }) => name);

/** Waits for lanes, in every world. */
export const joinLanes: EffectDefinition<readonly LaneRef[], void> = {
  name: 'lane.join',
  span: 'short',
  answer: 'inside',
  taped: { args: laneNames },
  cleanup: true,
  enabled: lanes => lanes.every(lane => (lane as Lane).ended),
  perform: lanes => {
    for (const lane of lanes as readonly Lane[]) if (lane.failure !== undefined) throw lane.failure;
  },
};

/** Cancels lanes, in a world that knows how to cancel one with all below it. */
export const cancelLanes = (
  cancelTree: (root: Lane) => void,
): EffectDefinition<readonly LaneRef[], void> => ({
  name: 'lane.cancel',
  span: 'short',
  answer: 'inside',
  taped: { args: laneNames },
  perform: lanes => {
    for (const lane of lanes as readonly Lane[]) cancelTree(lane);
  },
});

/** Runs it at once up to its first effect; what it throws before that rejects like what it throws later. */
export function startBody(body: () => Promise<void>): Promise<void> {
  try {
    return body();
  } catch (thrown) {
    return Promise.reject(thrown);
  }
}

/** Performs the effect; what it throws at once is an outcome, what it throws later a rejection. */
export function performEntry(entry: Entry): Outcome | Promise<unknown> {
  try {
    const result = entry.effect.perform(entry.args, entry);
    return result instanceof Promise ? result : ok(result);
  } catch (thrown) {
    return failed(thrown);
  }
}

export const ok = (value: unknown): Outcome => ({ kind: 'ok', value });

/** What a body threw; never undefined, so that a join can tell that it threw. */
export const failureOf = (lane: LaneRef, thrown: unknown): unknown =>
  thrown ?? new RepriseError('INTERNAL', `lane ${lane.name} threw ${String(thrown)}`);

export function unfinishedBusiness(lane: Lane): RepriseError | undefined {
  if (lane.entry) return misuse(lane, `ended without awaiting ${lane.entry.effect.name}`);
  const child = lane.firstChild;
  return child && misuse(lane, `ended before ${child.name}, which it forked; join it first`);
}

export const nameTaken = (name: string): RepriseError =>
  new RepriseError('LANE_MISUSE', `a lane named ${name} is already open`);

export const outsideAnyLane = (what: string): RepriseError =>
  new RepriseError('LANE_MISUSE', `${what} was called outside any lane`);

export const insideAnEffect = (what: string, { lane, effect }: Entry): RepriseError =>
  misuse(lane, `called ${what} inside the effect ${effect.name}; effects do not nest`);

export const secondEffect = (what: string, { lane, effect }: Entry): RepriseError =>
  misuse(
    lane,
    `asked for ${what} while ${effect.name} is under way; await it first, or use fork() instead of Promise.all`,
  );

export const strayLane = (lane: Lane): RepriseError =>
  misuse(
    lane,
    `awaits something that is not an effect (a timer, I/O, another lane's promise) after ${lane.lastEffect}`,
  );

const misuse = (lane: LaneRef, what: string) => new RepriseError('LANE_MISUSE', `lane ${lane.name} ${what}`);
