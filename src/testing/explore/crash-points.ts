import { asRecorded, recordedTurns } from '../../cases/explore/crash-points.ts';
import type { Forms } from '../../cases/explore/endings.ts';
import type { PerformedCase } from '../../cases/explore/perform.ts';
import type { PreparedCase } from '../../cases/explore/prepare.ts';
import type { Turn } from '../../cases/explore/race-file.ts';
import { scatter } from '../../effects/explore/policies.ts';
import { everyMishap } from './adversities.ts';
import { type Adversity, type Attempt, noAdversity, type Source } from './attempt.ts';

/** How many of the moments at which somebody could be killed in the recorded order have been tried. */
export interface CrashCoverage {
  readonly tried: number;
  /** Not known before the recorded order has been played without a crash. */
  readonly of?: number | undefined;
  /** Of those that were tried, the ones about which nothing can be said. */
  readonly inconclusive: number;
  /** Of those that were tried, the ones that came to something else than without a crash, as another order would. */
  readonly otherEnds: number;
}

/**
 * The recorded order, and then the same with a crash: of each step after each of its entries, and of all of them after
 * each entry of all. If it ends early, moments of all of it were tried.
 */
export class CrashPoints implements Source {
  readonly #turns: readonly Turn[];
  #points: readonly Adversity[] | undefined;
  #recorded: Forms | undefined;
  #hasBegun = false;
  #given = 0;
  #tried = 0;
  #inconclusive = 0;
  #otherEnds = 0;

  /** The trial is any schedule: it tells what is decided about. */
  constructor(prepared: PreparedCase, trial: PerformedCase) {
    this.#turns = recordedTurns(prepared, trial);
  }

  get coverage(): CrashCoverage {
    return {
      tried: this.#tried,
      of: this.#points?.length,
      inconclusive: this.#inconclusive,
      otherEnds: this.#otherEnds,
    };
  }

  next(): Attempt | undefined {
    if (!this.#hasBegun) {
      this.#hasBegun = true;
      return this.#attempt(noAdversity, 0);
    }
    const adversity = this.#points?.[this.#given];
    return adversity && this.#attempt(adversity, ++this.#given);
  }

  #attempt(adversity: Adversity, seed: number): Attempt {
    const policy = asRecorded(this.#turns);
    return { policy, adversity, by: 'the recorded order', seed, recorded: this.#recorded };
  }

  learn(performed: PerformedCase): void {
    const { verdict, forms } = performed;
    if (!this.#points) {
      this.#points = scatter(everyMishap(performed, { crashes: true, faults: [] }));
      if (verdict.kind === 'passed') this.#recorded = forms;
      return;
    }
    this.#tried++;
    if (verdict.kind === 'inconclusive') this.#inconclusive++;
    else if (this.#recorded && forms?.work !== this.#recorded.work) this.#otherEnds++;
  }
}
