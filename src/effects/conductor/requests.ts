import type { Origin } from '../divergence/explain.ts';
import { conflicts, type EffectDefinition, type Keys, type Outcome } from '../effect.ts';
import { Entry, type KeyTable, Lane } from '../lane.ts';
import { entryName, type Phase } from '../tracer.ts';
import type { LaneTable } from './conductor.ts';
import type { Asked, Birth, Obstacle, Player, Standing, View } from './scheduler.ts';

export class ConductedLane extends Lane {
  declare entry: AskedEntry | undefined;
  declare readonly parent: ConductedLane | undefined;
  /** Lanes that were opened inside of it and have not ended; while there are some, it waits for them. */
  inner = 0;

  constructor(
    name: string,
    parent: ConductedLane | undefined,
    readonly birth: Birth,
  ) {
    super(name, parent);
  }
}

/** A request that waits for the conductor, once if it is short and twice if it is long. */
export class AskedEntry extends Entry implements Asked {
  declare readonly lane: ConductedLane;

  constructor(
    lane: ConductedLane,
    effect: EffectDefinition<unknown, unknown>,
    args: unknown,
    readonly origin: Origin,
    settle: (outcome: Outcome) => void,
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
  readonly player: () => Player;
}

export function createView({ lanes, keys, granted, player }: ViewOptions): View {
  const obstacleOf = (asked: Asked): Obstacle | undefined => {
    if (asked.isDoomed) return undefined;
    if (asked.nextPhase === 'end') return player().canEnd(asked) ? undefined : { kind: 'no answer' };
    if (asked.effect.enabled?.(asked.args) === false && player().performs(asked))
      return { kind: 'condition' };
    return keys.areFree(asked.keys) ? undefined : heldKeys(asked.keys, lanes.inOrder);
  };
  return {
    get granted() {
      return granted();
    },
    askedBy: name => {
      const entry = lanes.get(name)?.entry;
      return entry?.phase === 'waiting' ? entry : undefined;
    },
    asked: () => {
      const asked: Asked[] = [];
      for (const { entry } of lanes.inOrder) if (entry?.phase === 'waiting') asked.push(entry);
      return asked;
    },
    isAlive: name => lanes.has(name),
    obstacleOf,
    standings: () => lanes.inOrder.map(lane => standingOf(lane, obstacleOf)),
  };
}

function standingOf(
  { name, entry, inner }: ConductedLane,
  obstacleOf: (asked: Asked) => Obstacle | undefined,
): Standing {
  if (entry?.phase === 'granted') return { kind: 'granted', lane: name, op: entry.effect.name };
  if (entry) {
    const obstacle = obstacleOf(entry);
    return { kind: 'parked', lane: name, asked: entry, ...(obstacle ? { obstacle } : {}) };
  }
  return inner > 0 ? { kind: 'waits for inner lanes', lane: name } : { kind: 'runs', lane: name };
}

/** Only a long effect that has begun holds keys while others wait. */
function heldKeys(wanted: Keys, lanes: readonly ConductedLane[]): Obstacle {
  const holders = lanes.flatMap(({ entry }) =>
    entry?.hasBegun && conflicts(entry.keys, wanted) ? [entry] : [],
  );
  return { kind: 'keys', key: contestedKey(wanted, holders), holders: holders.map(({ lane }) => lane.name) };
}

const contestedKey = (wanted: Keys, holders: readonly AskedEntry[]): string => {
  const isHeld = (key: string, alone: Keys) =>
    holders.some(holder => conflicts(holder.keys, alone)) ? [key] : [];
  const [key = ''] = [
    ...(wanted.writes ?? []).flatMap(key => isHeld(key, { writes: [key] })),
    ...(wanted.reads ?? []).flatMap(key => isHeld(key, { reads: [key] })),
  ];
  return key;
};
