import type { Asked, Birth } from '../effects/conductor/scheduler.ts';
import type { EffectDefinition } from '../effects/effect.ts';
import { entryName, type Phase } from '../effects/tracer.ts';
import { Entry, Lane } from '../world/lane.ts';
import type { Outcome } from '../world/outcome.ts';
import type { Origin } from './origin.ts';

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
