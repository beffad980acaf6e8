import type { JsonObject } from '../../core/index.ts';
import type { EffectOutcome, Keys } from '../effect.ts';
import {
  type EntryPlace,
  entryName,
  type Phase,
  type TracedRequest,
  tapedArgs,
  tapedOutcome,
} from '../tracer.ts';
import { argsJson, keysJson, outcomeJson, textJson } from './entry.ts';

/** Name and keys of an entry. Most entries share a few dozen kinds, so lines contain only the number of the kind. */
interface EntryKind {
  readonly number: number;
  readonly keys: Keys | undefined;
}

/** Limit of kinds in memory. Keys may contain ids of runs or sessions, so the number of kinds is unbounded. */
const mostKinds = 1000;

/** A line to be written: an entry, or the outcome of an entry whose own line is already complete. */
interface UnwrittenEntry {
  readonly n: number;
  readonly i: number;
  readonly phase: Phase;
  readonly lane: string;
  /** Copied from the request, which would keep its promises, and all that awaits them, in memory. */
  readonly effect: TracedRequest['effect'];
  readonly keys: Keys;
  readonly asked: unknown;
  readonly isEnding: boolean;
  /** JSON of the arguments; undefined if it is created later. */
  readonly args: string | undefined;
  /** Outcome, or its JSON if it is created already. */
  outcome: EffectOutcome | string | undefined;
}

/** Approximate number of characters of a line without its values. */
const lineLength = 100;

/**
 * Converts traced effects to lines of JSON. Values that may still change are serialized at once: a workflow function
 * may change the result of another. The rest is serialized by `take`, for many entries together: after each commit to
 * disk the processor caches are cold, and a single line costs several times as much.
 */
export class JournalLines {
  #waiting: (UnwrittenEntry | string)[] = [];
  /** Length in characters of the values that are known so far. */
  #textLength = 0;
  /** The short effect that was granted last, if nothing has happened since. */
  #asked: UnwrittenEntry | undefined;
  /** Short effects whose line is complete but whose outcome is not known yet. */
  readonly #inProgress = new Set<number>();
  readonly #numbers = new Map<string, number>();
  #kinds = 0;
  /** Line that defines the newest kind. */
  #definition = '';
  /** Kind of the last entry, by phase and name. */
  readonly #last: Readonly<Record<Phase, Map<string, EntryKind>>> = {
    short: new Map(),
    begin: new Map(),
    end: new Map(),
  };

  granted(request: TracedRequest, position: EntryPlace): void {
    const entry = this.#entry(request, position);
    this.#endAsked();
    this.#waiting.push(entry);
    if (position.phase !== 'begin') this.#asked = entry;
  }

  settled(request: TracedRequest, position: EntryPlace, outcome: EffectOutcome): void {
    const ended = isLastingOutcome(request, outcome)
      ? outcome
      : this.#measured(outcomeJson(tapedOutcome(request.effect, outcome)));
    this.#measureText(outcome.kind === 'ok' ? outcome.value : undefined);
    if (this.#asked?.n === position.n) {
      this.#asked.outcome = ended;
      this.#asked = undefined;
      return;
    }
    this.#endAsked();
    const entry = this.#inProgress.delete(position.n)
      ? waitingOf(request, position, { isEnding: true, args: undefined })
      : this.#entry(request, position);
    entry.outcome = ended;
    this.#waiting.push(entry);
  }

  /** Approximate number of characters that `take` would return. */
  get length(): number {
    return this.#textLength + this.#waiting.length * lineLength;
  }

  note(line: JsonObject): void {
    this.#waiting.push(`{"note":${JSON.stringify(line)}}\n`);
  }

  /** Returns the lines since the last call. */
  take(): string {
    this.#endAsked();
    const waiting = this.#waiting;
    this.#waiting = [];
    this.#textLength = 0;
    let lines = '';
    for (const line of waiting) lines += typeof line === 'string' ? line : this.#line(line);
    return lines;
  }

  #entry(request: TracedRequest, position: EntryPlace): UnwrittenEntry {
    const isLater = position.phase === 'end' || isLastingArgs(request);
    const args = isLater ? undefined : this.#measured(argsJson(tapedArgs(request)));
    this.#measureText(request.args);
    return waitingOf(request, position, { isEnding: false, args });
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
    this.#inProgress.add(this.#asked.n);
    this.#asked = undefined;
  }

  #line(waiting: UnwrittenEntry): string {
    const { n, i, phase, lane, effect, isEnding, args, outcome } = waiting;
    const ended =
      typeof outcome === 'string' ? outcome : outcomeJson(outcome && tapedOutcome(effect, outcome));
    if (isEnding) return `{"n":${n}${ended}}\n`;
    const pending = args ?? (phase === 'end' ? '' : argsJson(tapedArgs({ effect, args: waiting.asked })));
    const known = this.#kinds;
    const number = this.#numberOf(waiting);
    const line = `{"n":${n},"lane":${textJson(lane)},"i":${i},"of":${number}${pending}${ended}}\n`;
    return number < known ? line : `${this.#definition}${line}`;
  }

  #numberOf({ effect, keys: given, phase }: UnwrittenEntry): number {
    const keys = phase === 'end' ? undefined : given;
    const last = this.#last[phase].get(effect.name);
    if (last && isSame(last.keys?.writes, keys?.writes) && isSame(last.keys?.reads, keys?.reads))
      return last.number;
    const number = this.#define(`"op":${JSON.stringify(entryName(effect, phase))}${keysJson(keys)}`);
    this.#last[phase].set(effect.name, { number, keys });
    return number;
  }

  /** The definition of a kind comes before the first line with its number. */
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
  { lane, effect, args: pending, keys }: TracedRequest,
  { n, i, phase }: EntryPlace,
  { isEnding, args }: Pick<UnwrittenEntry, 'isEnding' | 'args'>,
): UnwrittenEntry => ({
  n,
  i,
  phase,
  lane: lane.name,
  effect,
  keys,
  asked: pending,
  isEnding,
  args,
  outcome: undefined,
});

const isObject = (value: unknown): boolean =>
  (typeof value === 'object' && value !== null) || typeof value === 'function';

const isLastingArgs = ({ effect, args }: TracedRequest): boolean =>
  !isObject(args) || effect.taped?.lasting?.args?.(args) === true;

const isLastingOutcome = ({ effect }: TracedRequest, outcome: EffectOutcome): boolean =>
  outcome.kind === 'ok' &&
  (!isObject(outcome.value) || effect.taped?.lasting?.result?.(outcome.value) === true);

function isSame(some: readonly string[] | undefined, others: readonly string[] | undefined): boolean {
  if (some === others) return true;
  if (some?.length !== others?.length) return false;
  return some?.every((name, at) => name === others?.[at]) ?? true;
}
