import type { Forms } from '../../cases/explore/endings.ts';
import type { PerformedCase } from '../../cases/explore/perform.ts';
import type { Attempt, Source } from './attempt.ts';
import type { Violation } from './violation.ts';

const noSuchOrder = 'no such order';
const somethingLeft = 'something left';

/** Whether it can be told only by what the steps come to one after another. */
export const isAboutOrders = (what: string): boolean => what === noSuchOrder || what === somethingLeft;

/** What a case comes to when its steps run one after another, in every order of them. */
export class Endings {
  readonly #work = new Set<string>();
  readonly #all = new Set<string>();
  #areKnown = true;
  #isClosed = false;

  /** Whether all orders came to something. */
  get areKnown(): boolean {
    return this.#isClosed && this.#areKnown;
  }

  /** Whether there are no more orders to be learnt from. */
  get areClosed(): boolean {
    return this.#isClosed;
  }

  learn({ forms, verdict }: PerformedCase): void {
    if (!forms || verdict.kind !== 'passed') this.#areKnown = false;
    else {
      this.#work.add(forms.work);
      this.#all.add(forms.all);
    }
  }

  /** There are no more orders. */
  close(): void {
    this.#isClosed = true;
  }

  /** `isCalm`: nothing has happened that would explain why something was left behind, or why a step failed. */
  violation({ work, all }: Forms, isCalm: boolean): Violation | undefined {
    if (!this.areKnown) return undefined;
    if (!this.#work.has(work))
      return {
        what: noSuchOrder,
        message: `what it came to is not what any order of the steps, one after another, comes to: ${work}`,
      };
    if (isCalm && !this.#all.has(all))
      return {
        what: somethingLeft,
        message: `a step failed, or something was left, that no order of the steps, one after another, leaves: ${all}`,
      };
    return undefined;
  }
}

/** Each order of the steps, and what it comes to. Nothing is compared before all are known, or one fails. */
export class OneAfterAnother implements Source {
  readonly #orders: readonly Attempt[];
  readonly #endings: Endings;
  #given = 0;
  #learned = 0;

  constructor(orders: readonly Attempt[], endings: Endings) {
    this.#orders = orders;
    this.#endings = endings;
  }

  next(): Attempt | undefined {
    return this.#orders[this.#given++];
  }

  learn(performed: PerformedCase): void {
    this.#endings.learn(performed);
    this.#learned++;
    if (this.#learned === this.#orders.length || performed.verdict.kind === 'failed') this.#endings.close();
  }
}
