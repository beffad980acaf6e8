import { RepriseError } from '../core/errors.ts';
import type { Asked } from '../effects/conductor/scheduler.ts';
import { conflicts, type Keys } from '../effects/effect.ts';

interface Deed {
  readonly lane: string;
  readonly op: string;
  readonly keys: Keys;
}

export interface Misfit {
  readonly error: unknown;
  /** What the pinned lane asked for. */
  readonly asked: Asked | undefined;
  /** The pinned step; `undefined` if all of them have ended. */
  readonly step: string | undefined;
}

/** What a live step has done, to tell why a pinned one does not fit any more. */
export class LiveDeeds {
  readonly #live: string;
  readonly #rerecord: string;
  readonly #deeds: Deed[] = [];
  #whyOutOfOrder: string | undefined;

  constructor(live: string, rerecord: string) {
    this.#live = live;
    this.#rerecord = rerecord;
  }

  add({ lane, op, keys }: Asked): void {
    if (keys.writes?.length) this.#deeds.push({ lane: lane.name, op, keys });
  }

  leftOrder(why: string): void {
    this.#whyOutOfOrder = why;
  }

  /** The error of a pinned lane, with what the live step has to do with it. Others are given back. */
  refusal({ error, asked, step }: Misfit): unknown {
    if (!(error instanceof RepriseError)) return error;
    const what =
      step === undefined
        ? `step ${this.#live} cannot be recorded alone`
        : `step ${step} cannot stay as it was recorded, because of what step ${this.#live} does now`;
    const message = [what, ...this.#order(), ...this.#shared(asked), error.message].join('\n');
    return this.#error(message);
  }

  cutOff({ effect, lane }: Asked): RepriseError {
    return this.#error(
      `step ${this.#live} cannot be recorded alone: ${effect.name} of lane ${lane.name} is cut off, and how far it comes is known only if the whole case is played for real`,
    );
  }

  #error(message: string): RepriseError {
    return new RepriseError('REPLAY_DIVERGED', message, { hint: `record the whole case: ${this.#rerecord}` });
  }

  #order(): readonly string[] {
    return this.#whyOutOfOrder === undefined
      ? []
      : [`  ${this.#live} left its order: ${this.#whyOutOfOrder}`];
  }

  #shared(asked: Asked | undefined): readonly string[] {
    const deed = asked && this.#deeds.findLast(({ keys }) => conflicts(keys, asked.keys));
    if (!deed) return [];
    const { reads = [], writes = [] } = asked.keys;
    const both = (deed.keys.writes ?? []).filter(key => meets(key, [...reads, ...writes]));
    const keys = both.length > 0 ? both : (deed.keys.reads ?? []).filter(key => meets(key, writes));
    return [`  both touch ${keys.join(', ')}: before it came ${deed.op} of lane ${deed.lane}`];
  }
}

/** A key may stand for many. */
const meets = (key: string, others: readonly string[]): boolean =>
  conflicts({ writes: [key] }, { writes: others });
