import { conflicts } from '../../effects/effect.ts';
import type { Policy, Verdict } from '../../effects/explore/schedule.ts';

interface Performance {
  readonly name: string;
  readonly writes: readonly string[];
}

/** Looks at what stands behind keys before and after each effect: only who writes a key may change it. */
export class WatchedKeys {
  readonly #looks = new Map<string, () => unknown>();
  #broken: Extract<Verdict, { kind: 'failed' }> | undefined;

  /** What was changed by an effect that does not say so. */
  get broken(): Verdict | undefined {
    return this.#broken;
  }

  watch(key: string, look: () => unknown): void {
    this.#looks.set(key, look);
  }

  /** What comes after it is of no interest. */
  until(policy: Policy): Policy {
    const choose: Policy['choose'] = point => {
      if (this.#broken) throw new Error(this.#broken.message);
      return policy.choose(point);
    };
    return { ...policy, choose };
  }

  around<Result>(
    performance: Performance,
    perform: () => Result | Promise<Result>,
  ): Result | Promise<Result> {
    return this.#looks.size === 0 ? perform() : this.#watched(performance, perform);
  }

  async #watched<Result>(
    { name, writes }: Performance,
    perform: () => Result | Promise<Result>,
  ): Promise<Result> {
    const before = this.#look();
    try {
      return await perform();
    } finally {
      const after = this.#look();
      for (const [key, value] of before)
        if (after.get(key) !== value && !conflicts({ writes }, { writes: [key] }))
          this.#broken ??= {
            kind: 'failed',
            what: 'undeclared write',
            message: `${name} changed ${key}, and says that it writes ${writes.join(', ') || 'nothing'}`,
          };
    }
  }

  #look(): ReadonlyMap<string, string> {
    return new Map([...this.#looks].map(([key, look]) => [key, JSON.stringify(look()) ?? 'undefined']));
  }
}
