import { isRecord } from '../core/schema.ts';

/** What is shorter as JSON is written again wherever it stands: a reader should rarely have to look elsewhere. */
const shortestRepeat = 120;

/** The only field of a map that stands for a value which an earlier entry has. */
const sameAs = 'same';

/** Before the place of a value comes that of its entry: `engine#0/3:17`. */
export const entryPlace = (lane: string, i: number): string => `${lane}:${i}`;

/** Puts `{"same": "engine#0:9/args/events/0/data"}` where a long value stands that stood on the tape before. */
export class RepeatWriter {
  readonly #places = new Map<string, string>();

  /** `place` is that of the value: `engine#0:9/args`. */
  shorten(value: unknown, place: string): unknown {
    const text = JSON.stringify(value);
    if (text === undefined || isPlain(text)) return value;
    return this.#shorten(JSON.parse(text), place);
  }

  #shorten(value: unknown, place: string): unknown {
    const text = JSON.stringify(value);
    if (isPlain(text)) return value;
    if (text.length >= shortestRepeat) {
      const first = this.#places.get(text);
      if (first !== undefined) return { [sameAs]: first };
      this.#places.set(text, place);
    }
    if (Array.isArray(value)) return value.map((item, at) => this.#shorten(item, `${place}/${at}`));
    if (!isRecord(value)) return value;
    if (isReference(value)) return { [sameAs]: [value] };
    return Object.fromEntries(
      Object.entries(value).map(([key, item]) => [key, this.#shorten(item, `${place}/${escaped(key)}`)]),
    );
  }
}

/** Nothing in it was written before, and nothing in it looks as if it were a reference. */
const isPlain = (text: string): boolean => text.length < shortestRepeat && !mayRepeat(text);

/** Whether there may be a reference in this JSON. */
export const mayRepeat = (text: string): boolean => text.includes(`{"${sameAs}":`);

const isReference = (value: Readonly<Record<string, unknown>>): boolean =>
  Object.hasOwn(value, sameAs) && Object.keys(value).length === 1;

const escaped = (key: string): string => key.replaceAll('~', '~0').replaceAll('/', '~1');
const unescaped = (key: string): string => key.replaceAll('~1', '/').replaceAll('~0', '~');

/** Puts the values back. */
export class RepeatReader {
  readonly #entries = new Map<string, Readonly<Record<string, unknown>>>();
  readonly #sought = new Set<string>();

  /** An entry as its line says it; later ones, and its own later parts, may refer to it. */
  add(place: string, entry: Readonly<Record<string, unknown>>): void {
    this.#entries.set(place, entry);
  }

  /** Throws a `RangeError` that says which reference leads nowhere. */
  restore(value: unknown): unknown {
    if (Array.isArray(value)) return value.map(item => this.restore(item));
    if (!isRecord(value)) return value;
    if (!isReference(value))
      return Object.fromEntries(Object.entries(value).map(([key, item]) => [key, this.restore(item)]));
    const target = value[sameAs];
    if (Array.isArray(target)) return target[0];
    return this.#find(String(target));
  }

  #find(place: string): unknown {
    const [, entry = '', rest = ''] = /^(.*:\d+)\/(.*)$/s.exec(place) ?? [];
    let found: unknown = this.#entries.get(entry);
    for (const key of rest.split('/').map(unescaped)) {
      const holds = typeof found === 'object' && found !== null && Object.hasOwn(found, key);
      found = holds ? (found as Readonly<Record<string, unknown>>)[key] : undefined;
    }
    if (found === undefined || this.#sought.has(place)) {
      throw new RangeError(`${sameAs}: nothing stands at "${place}" before`);
    }
    this.#sought.add(place);
    const restored = this.restore(found);
    this.#sought.delete(place);
    return restored;
  }
}
