import type { Origin } from '../divergence/explain.ts';
import { conflicts, type EffectDefinition, type EffectOutcome, type Keys } from '../effect.ts';
import type { KeyTable } from '../key-table.ts';
import { Lane, LaneEntry } from '../lane.ts';
import { entryName, type Phase } from '../tracer.ts';
import type { LaneTable } from './conductor.ts';
import type { Birth, LaneStatus, Obstacle, PendingEffect, Scheduler, SchedulerView } from './scheduler.ts';

export class ConductedLane extends Lane {
  declare entry: PendingEntry | undefined;
  declare readonly parent: ConductedLane | undefined;
  /** Number of lanes opened inside it that have not ended. It waits for them. */
  inner = 0;

  constructor(
    name: string,
    parent: ConductedLane | undefined,
    readonly birth: Birth,
  ) {
    super(name, parent);
  }
}

/** A request that waits for the conductor: once for a short effect, twice for a long one. */
export class PendingEntry extends LaneEntry implements PendingEffect {
  declare readonly lane: ConductedLane;

  constructor(
    lane: ConductedLane,
    effect: EffectDefinition<unknown, unknown>,
    args: unknown,
    readonly origin: Origin,
    settle: (outcome: EffectOutcome) => void,
  ) {
    super(lane, effect, args, settle);
    this.phase = 'waiting';
  }

  get hasBegun(): boolean {
    return this.place !== undefined && this.effect.span === 'long';
  }

  get nextPhase(): Phase {
    if (this.effect.span === 'short') return 'short';
    return this.place === undefined ? 'begin' : 'end';
  }

  get op(): string {
    return entryName(this.effect, this.nextPhase);
  }

  get i(): number {
    return this.lane.entries;
  }
}

interface ViewOptions {
  readonly lanes: LaneTable;
  readonly keys: KeyTable;
  readonly granted: () => number;
  readonly scheduler: () => Scheduler;
}

export function createView({ lanes, keys, granted, scheduler }: ViewOptions): SchedulerView {
  const obstacleOf = (pending: PendingEffect): Obstacle | undefined => {
    if (pending.isCancelling) return undefined;
    if (pending.nextPhase === 'end') return scheduler().canEnd(pending) ? undefined : { kind: 'no answer' };
    if (pending.effect.enabled?.(pending.args) === false && scheduler().performs(pending))
      return { kind: 'condition' };
    return keys.areFree(pending.keys) ? undefined : heldKeys(pending.keys, lanes.inOrder);
  };
  return {
    get granted() {
      return granted();
    },
    pendingOf: name => {
      const entry = lanes.get(name)?.entry;
      return entry?.phase === 'waiting' ? entry : undefined;
    },
    pending: () => {
      const pending: PendingEffect[] = [];
      for (const { entry } of lanes.inOrder) if (entry?.phase === 'waiting') pending.push(entry);
      return pending;
    },
    isAlive: name => lanes.has(name),
    obstacleOf,
    statuses: () => lanes.inOrder.map(lane => laneStatusOf(lane, obstacleOf)),
  };
}

function laneStatusOf(
  { name, entry, inner }: ConductedLane,
  obstacleOf: (pending: PendingEffect) => Obstacle | undefined,
): LaneStatus {
  if (entry?.phase === 'granted') return { kind: 'granted', lane: name, op: entry.effect.name };
  if (entry) {
    const obstacle = obstacleOf(entry);
    return { kind: 'parked', lane: name, pending: entry, ...(obstacle ? { obstacle } : {}) };
  }
  return inner > 0 ? { kind: 'waits for inner lanes', lane: name } : { kind: 'runs', lane: name };
}

/** Describes which lanes hold the keys. Only a long effect that has begun holds keys while other lanes wait. */
function heldKeys(wanted: Keys, lanes: readonly ConductedLane[]): Obstacle {
  const holders = lanes.flatMap(({ entry }) =>
    entry?.hasBegun && conflicts(entry.keys, wanted) ? [entry] : [],
  );
  return { kind: 'keys', key: contestedKey(wanted, holders), holders: holders.map(({ lane }) => lane.name) };
}

const contestedKey = (wanted: Keys, holders: readonly PendingEntry[]): string => {
  const isHeld = (key: string, alone: Keys) =>
    holders.some(holder => conflicts(holder.keys, alone)) ? [key] : [];
  const [key = ''] = [
    ...(wanted.writes ?? []).flatMap(key => isHeld(key, { writes: [key] })),
    ...(wanted.reads ?? []).flatMap(key => isHeld(key, { reads: [key] })),
  ];
  return key;
};
