import type { JsonObject } from '../core/json.ts';
import type { Keys } from './effect.ts';
import { argsJson, keysJson, outcomeJson, textJson } from './journal-entry.ts';
import type { Outcome } from './outcome.ts';
import {
  type EntryPlace,
  entryName,
  type Phase,
  type TracedRequest,
  tapedArgs,
  tapedOutcome,
} from './trace.ts';

/** What an entry is of: a name and keys. Most entries are of a few dozen, so they say only its number. */
interface Kind {
  readonly number: number;
  readonly keys: Keys | undefined;
}

/** Keys may have the name of a run or of a session in them: a kind that has not been met for long is forgotten. */
const mostKinds = 1000;

/**
 * Makes lines of JSON from what a tracer is told. Values become text at once: a function of the workflow may change
 * what another one gave it.
 */
export class JournalLines {
  #lines = '';
  /** The short effect that was granted last, as long as nothing else has happened. */
  #asked: { readonly n: number; readonly line: string } | undefined;
  /** Short effects that take longer: their lines are there, without an outcome. */
  readonly #underWay = new Set<number>();
  readonly #numbers = new Map<string, number>();
  #kinds = 0;
  /** By name, that of the last entry. */
  readonly #last: Readonly<Record<Phase, Map<string, Kind>>> = {
    short: new Map(),
    begin: new Map(),
    end: new Map(),
  };

  granted(request: TracedRequest, place: EntryPlace): void {
    const line = this.#line(request, place);
    this.#endAsked();
    if (place.phase === 'begin') this.#lines += `${line}}\n`;
    else this.#asked = { n: place.n, line };
  }

  settled(request: TracedRequest, place: EntryPlace, outcome: Outcome): void {
    // Not inside of the addition: it may add a line itself.
    const beginning = this.#beginning(request, place);
    this.#lines += `${beginning}${outcomeJson(tapedOutcome(request.effect, outcome))}}\n`;
  }

  /** How much there is to take. */
  get length(): number {
    return this.#lines.length;
  }

  note(line: JsonObject): void {
    this.#lines += `{"note":${JSON.stringify(line)}}\n`;
  }

  /** All that has happened since it was last asked for. */
  take(): string {
    this.#endAsked();
    const lines = this.#lines;
    this.#lines = '';
    return lines;
  }

  #endAsked(): void {
    const asked = this.#asked;
    if (!asked) return;
    this.#asked = undefined;
    this.#underWay.add(asked.n);
    this.#lines += `${asked.line}}\n`;
  }

  #beginning(request: TracedRequest, place: EntryPlace): string {
    const asked = this.#asked;
    if (asked?.n === place.n) {
      this.#asked = undefined;
      return asked.line;
    }
    return this.#underWay.delete(place.n) ? `{"n":${place.n}` : this.#line(request, place);
  }

  #line(request: TracedRequest, { n, i, phase }: EntryPlace): string {
    const placed = `{"n":${n},"lane":${textJson(request.lane.name)},"i":${i},"of":${this.#numberOf(request, phase)}`;
    return phase === 'end' ? placed : `${placed}${argsJson(tapedArgs(request))}`;
  }

  #numberOf({ effect, keys: given }: TracedRequest, phase: Phase): number {
    const keys = phase === 'end' ? undefined : given;
    const last = this.#last[phase].get(effect.name);
    if (last && isSame(last.keys?.writes, keys?.writes) && isSame(last.keys?.reads, keys?.reads))
      return last.number;
    const number = this.#define(`"op":${JSON.stringify(entryName(effect, phase))}${keysJson(keys)}`);
    this.#last[phase].set(effect.name, { number, keys });
    return number;
  }

  /** The line that says what a number stands for comes before any line with that number. */
  #define(kind: string): number {
    const known = this.#numbers.get(kind);
    if (known !== undefined) return known;
    if (this.#numbers.size >= mostKinds) this.#numbers.clear();
    const number = this.#kinds++;
    this.#numbers.set(kind, number);
    this.#lines += `{"of":${number},${kind}}\n`;
    return number;
  }
}

function isSame(some: readonly string[] | undefined, others: readonly string[] | undefined): boolean {
  if (some === others) return true;
  if (some?.length !== others?.length) return false;
  return some?.every((name, at) => name === others?.[at]) ?? true;
}
