import type { JsonObject } from '../../core/json.ts';
import type { Keys, Outcome } from '../effect.ts';
import {
  type EntryPlace,
  entryName,
  type Phase,
  type TracedRequest,
  tapedArgs,
  tapedOutcome,
} from '../tracer.ts';
import { argsJson, keysJson, outcomeJson, textJson } from './entry.ts';

/** What an entry is of: a name and keys. Most entries are of a few dozen, so they say only its number. */
interface Kind {
  readonly number: number;
  readonly keys: Keys | undefined;
}

/** Keys may have the name of a run or of a session in them: a kind that has not been met for long is forgotten. */
const mostKinds = 1000;

/** What becomes a line: an entry, or how one ended whose line has been taken, or was followed by others. */
interface Waiting {
  readonly n: number;
  readonly i: number;
  readonly phase: Phase;
  readonly lane: string;
  /** Not the request itself: promises hang from it, and all that waits for them. */
  readonly effect: TracedRequest['effect'];
  readonly keys: Keys;
  readonly asked: unknown;
  readonly isEnding: boolean;
  /** The text of what was asked, unless that is made later. */
  readonly args: string | undefined;
  /** The same of how it ended. */
  outcome: Outcome | string | undefined;
}

/** In characters, about: a line without the texts that are made of it already. */
const lineLength = 100;

/**
 * Makes lines of JSON from what a tracer is told. Values become text at once if they may be changed: a function of the
 * workflow may do that to what another one gave it. All else becomes text when it is asked for, of many entries together:
 * after each commit to the disk the caches of the processor are cold, and a line by itself costs several times as much.
 */
export class JournalLines {
  #waiting: (Waiting | string)[] = [];
  /** In characters, of the values that are there. */
  #textLength = 0;
  /** The short effect that was granted last, as long as nothing else has happened. */
  #asked: Waiting | undefined;
  /** Short effects that take longer: their lines are there, without an outcome. */
  readonly #underWay = new Set<number>();
  readonly #numbers = new Map<string, number>();
  #kinds = 0;
  /** The line of the kind that was met last for the first time. */
  #definition = '';
  /** By name, that of the last entry. */
  readonly #last: Readonly<Record<Phase, Map<string, Kind>>> = {
    short: new Map(),
    begin: new Map(),
    end: new Map(),
  };

  granted(request: TracedRequest, place: EntryPlace): void {
    const entry = this.#entry(request, place);
    this.#endAsked();
    this.#waiting.push(entry);
    if (place.phase !== 'begin') this.#asked = entry;
  }

  settled(request: TracedRequest, place: EntryPlace, outcome: Outcome): void {
    const ended = isLastingOutcome(request, outcome)
      ? outcome
      : this.#measured(outcomeJson(tapedOutcome(request.effect, outcome)));
    this.#measureText(outcome.kind === 'ok' ? outcome.value : undefined);
    if (this.#asked?.n === place.n) {
      this.#asked.outcome = ended;
      this.#asked = undefined;
      return;
    }
    this.#endAsked();
    const entry = this.#underWay.delete(place.n)
      ? waitingOf(request, place, { isEnding: true, args: undefined })
      : this.#entry(request, place);
    entry.outcome = ended;
    this.#waiting.push(entry);
  }

  /** How much there is to take: about as many characters. */
  get length(): number {
    return this.#textLength + this.#waiting.length * lineLength;
  }

  note(line: JsonObject): void {
    this.#waiting.push(`{"note":${JSON.stringify(line)}}\n`);
  }

  /** All that has happened since it was last asked for. */
  take(): string {
    this.#endAsked();
    const waiting = this.#waiting;
    this.#waiting = [];
    this.#textLength = 0;
    let lines = '';
    for (const line of waiting) lines += typeof line === 'string' ? line : this.#line(line);
    return lines;
  }

  #entry(request: TracedRequest, place: EntryPlace): Waiting {
    const isLater = place.phase === 'end' || isLastingArgs(request);
    const args = isLater ? undefined : this.#measured(argsJson(tapedArgs(request)));
    this.#measureText(request.args);
    return waitingOf(request, place, { isEnding: false, args });
  }

  #measured(text: string): string {
    this.#textLength += text.length;
    return text;
  }

  #measureText(value: unknown): void {
    if (typeof value === 'string') this.#textLength += value.length;
  }

  #endAsked(): void {
    if (!this.#asked) return;
    this.#underWay.add(this.#asked.n);
    this.#asked = undefined;
  }

  #line(waiting: Waiting): string {
    const { n, i, phase, lane, effect, isEnding, args, outcome } = waiting;
    const ended =
      typeof outcome === 'string' ? outcome : outcomeJson(outcome && tapedOutcome(effect, outcome));
    if (isEnding) return `{"n":${n}${ended}}\n`;
    const asked = args ?? (phase === 'end' ? '' : argsJson(tapedArgs({ effect, args: waiting.asked })));
    const known = this.#kinds;
    const number = this.#numberOf(waiting);
    const line = `{"n":${n},"lane":${textJson(lane)},"i":${i},"of":${number}${asked}${ended}}\n`;
    return number < known ? line : `${this.#definition}${line}`;
  }

  #numberOf({ effect, keys: given, phase }: Waiting): number {
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
    this.#definition = `{"of":${number},${kind}}\n`;
    return number;
  }
}

const waitingOf = (
  { lane, effect, args: asked, keys }: TracedRequest,
  { n, i, phase }: EntryPlace,
  { isEnding, args }: Pick<Waiting, 'isEnding' | 'args'>,
): Waiting => ({ n, i, phase, lane: lane.name, effect, keys, asked, isEnding, args, outcome: undefined });

const isObject = (value: unknown): boolean =>
  (typeof value === 'object' && value !== null) || typeof value === 'function';

const isLastingArgs = ({ effect, args }: TracedRequest): boolean =>
  !isObject(args) || effect.taped?.lasting?.args?.(args) === true;

const isLastingOutcome = ({ effect }: TracedRequest, outcome: Outcome): boolean =>
  outcome.kind === 'ok' &&
  (!isObject(outcome.value) || effect.taped?.lasting?.result?.(outcome.value) === true);

function isSame(some: readonly string[] | undefined, others: readonly string[] | undefined): boolean {
  if (some === others) return true;
  if (some?.length !== others?.length) return false;
  return some?.every((name, at) => name === others?.[at]) ?? true;
}
