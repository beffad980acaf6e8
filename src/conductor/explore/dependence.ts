import { conflicts, type Keys } from '../../effects/effect.ts';
import type { Move } from '../../effects/explore/schedule.ts';

const separator = '\n';

/** Keys as one text: the same for the same keys in the same order. */
const keysText = ({ reads, writes }: Keys): string =>
  `${writes === undefined ? '' : writes.join(separator)}${separator}${separator}${reads === undefined ? '' : reads.join(separator)}`;

const touchesNothing = 0;

/** Which keys conflict, asked once for each two of them: the same few come again and again. */
export class Dependence {
  readonly #ids = new Map<string, number>([[keysText({}), touchesNothing]]);
  readonly #keys: Keys[] = [{}];
  readonly #known = new Map<number, boolean>();

  /** A number for what the move touches. */
  idOf({ keys }: Move): number {
    const text = keysText(keys);
    const known = this.#ids.get(text);
    if (known !== undefined) return known;
    const id = this.#keys.length;
    this.#ids.set(text, id);
    this.#keys.push(keys);
    return id;
  }

  conflict(a: number, b: number): boolean {
    if (a === touchesNothing || b === touchesNothing) return false;
    const pair = a < b ? a * mostKeys + b : b * mostKeys + a;
    const known = this.#known.get(pair);
    if (known !== undefined) return known;
    const answer = conflicts(this.#keys[a] ?? {}, this.#keys[b] ?? {});
    this.#known.set(pair, answer);
    return answer;
  }
}

const mostKeys = 2 ** 26;
