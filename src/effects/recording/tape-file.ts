import { fields, isRecord, text, wholeFrom } from '../../core/schema.ts';
import type { Keys, Outcome } from '../effect.ts';
import {
  argsJson,
  contentFields,
  contentOf,
  type EntryContent,
  entryProblem,
  keysJson,
  outcomeJson,
} from './entry.ts';
import {
  invalidLine,
  linesOf,
  parseHeader,
  parseLine,
  type SourceFile,
  type SourceLine,
} from './json-lines.ts';

/** What is shorter as JSON is written again wherever it stands: a reader should rarely have to look elsewhere. */
const shortestRepeat = 120;

/** The only field of a map that stands for a value which an earlier entry has. */
const sameAs = 'same';

/** Before the place of a value comes that of its entry: `engine#0/3:17`. */
const entryPlace = (lane: string, i: number): string => `${lane}:${i}`;

/** Puts `{"same": "engine#0:9/args/events/0/data"}` where a long value stands that stood on the tape before. */
class RepeatWriter {
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
const mayRepeat = (text: string): boolean => text.includes(`{"${sameAs}":`);

const isReference = (value: Readonly<Record<string, unknown>>): boolean =>
  Object.hasOwn(value, sameAs) && Object.keys(value).length === 1;

const escaped = (key: string): string => key.replaceAll('~', '~0').replaceAll('/', '~1');
const unescaped = (key: string): string => key.replaceAll('~1', '/').replaceAll('~0', '~');

/** Puts the values back. */
class RepeatReader {
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

/** What made a tape. */
export interface TapeHeader {
  readonly case: string;
  readonly step: string;
  /** Versions. */
  readonly reprise: string;
  readonly git: string;
  readonly node: string;
  readonly recorded_at: string;
}

/** An entry without its place in the order, so that the tape of one step does not change with another's timing. */
export interface TapeEntry extends EntryContent {
  /** Below the step's own lane, which is the empty text: `engine#0/3`. */
  readonly lane: string;
  readonly i: number;
}

interface Tape {
  readonly header: TapeHeader;
  /** Lane by lane. */
  readonly entries: readonly TapeEntry[];
}

export interface ParsedTape extends Tape {
  /** The line of each entry. */
  readonly lines: readonly number[];
}

const tapeFormat = 2;

/** Raised when redaction replaces other things than before, because both sides of a comparison must agree. */
const redactionVersion = 1;

export const tapeFileName = (caseName: string, step: string): string => `${caseName}__${step}.vcr`;

/** Equal tapes give equal bytes, whatever order their entries came in. */
export function writeTape({ header, entries }: Tape): string {
  const { case: caseName, step, reprise, git, node, recorded_at } = header;
  const first = {
    format: tapeFormat,
    kind: 'tape',
    case: caseName,
    step,
    reprise,
    git,
    node,
    recorded_at,
    redaction: redactionVersion,
  };
  const inOrder = [...entries].sort((a, b) => compareLanes(a.lane, b.lane) || a.i - b.i);
  const lines = new LineWriter();
  return `${[JSON.stringify(first), ...inOrder.map(entry => lines.line(entry))].join('\n')}\n`;
}

/**
 * Makes lines of entries that do not say again what an earlier one said: a line without `lane` is of the lane of the
 * line before, one without `keys` has those of the last entry with its `op`, and long values stand there once.
 */
class LineWriter {
  #lane: string | undefined;
  readonly #keys = new Map<string, string>();
  readonly #repeats = new RepeatWriter();

  line({ lane, i, op, keys, args, outcome }: TapeEntry): string {
    const laneJson = lane === this.#lane ? '' : `"lane":${JSON.stringify(lane)},`;
    this.#lane = lane;
    const place = entryPlace(lane, i);
    const asked = argsJson(this.#repeats.shorten(args, `${place}/args`));
    const answered = outcomeJson(this.#shortened(outcome, `${place}/ok`));
    return `{${laneJson}"i":${i},"op":${JSON.stringify(op)}${this.#keysJson(op, keys)}${asked}${answered}}`;
  }

  #keysJson(op: string, keys: Keys | undefined): string {
    const [before = '', now] = [this.#keys.get(op), keysJson(keys)];
    this.#keys.set(op, now);
    if (now === before) return '';
    return now === '' ? ',"keys":{}' : now;
  }

  #shortened(outcome: Outcome | undefined, place: string): Outcome | undefined {
    return outcome?.kind === 'ok'
      ? { kind: 'ok', value: this.#repeats.shorten(outcome.value, place) }
      : outcome;
  }
}

/** `a` before `a/2` before `a/10` before `a/engine#0`. */
function compareLanes(a: string, b: string): number {
  const [left, right] = [a.split('/'), b.split('/')];
  for (const [at, name] of left.entries()) {
    const other = right[at];
    if (other === undefined) return 1;
    if (name !== other) return forkNumber(name) - forkNumber(other) || (name < other ? -1 : 1);
  }
  return left.length - right.length;
}

/** Names that are no numbers come last. */
const forkNumber = (name: string): number =>
  /^\d{0,15}$/.test(name) ? Number(name) : Number.MAX_SAFE_INTEGER;

const headerFields = fields({
  format: wholeFrom(1),
  kind: text,
  case: text,
  step: text,
  reprise: text,
  git: text,
  node: text,
  recorded_at: text,
  redaction: wholeFrom(1),
});

const entryFields = fields(
  { i: wholeFrom(0), ...contentFields.required },
  { lane: text, ...contentFields.optional },
);

/** Throws TAPE_INVALID with the line, or REPLAY_DIVERGED if it is of another format. */
export function parseTape({ file, text }: SourceFile): ParsedTape {
  const header = headerOf({ file, text });
  const lines = linesOf({ file, text }).slice(1);
  const reader = new LineReader(file);
  return { header, entries: lines.map(line => reader.entry(line)), lines: lines.map(({ line }) => line) };
}

/** Puts back what lines leave out. */
class LineReader {
  readonly #file: string;
  #lane: string | undefined;
  readonly #next = new Map<string, number>();
  readonly #keys = new Map<string, Keys>();
  readonly #repeats = new RepeatReader();

  constructor(file: string) {
    this.#file = file;
  }

  entry(line: SourceLine): TapeEntry {
    const value = parseLine(this.#file, line);
    const problem = entryProblem(entryFields, value);
    if (problem !== undefined) throw invalidLine(this.#file, line.line, problem);
    const { i } = value as { readonly i: number };
    const lane = this.#laneOf(value, line);
    const expected = this.#next.get(lane) ?? 0;
    if (i !== expected) {
      throw invalidLine(
        this.#file,
        line.line,
        `entry ${i} of lane "${lane}", expected its entry ${expected}`,
      );
    }
    this.#next.set(lane, i + 1);
    this.#repeats.add(entryPlace(lane, i), value);
    const { keys, ...content } = contentOf(value);
    return { lane, i, ...content, ...this.#repeated(content, line), ...this.#keysOf(content.op, keys) };
  }

  #laneOf(value: Readonly<Record<string, unknown>>, { line }: SourceLine): string {
    const lane = (value['lane'] as string | undefined) ?? this.#lane;
    if (lane === undefined) throw invalidLine(this.#file, line, 'lane: expected a text');
    this.#lane = lane;
    return lane;
  }

  #keysOf(op: string, keys: Keys | undefined): Pick<EntryContent, 'keys'> {
    if (keys) this.#keys.set(op, keys);
    const known = this.#keys.get(op);
    return known?.reads?.length || known?.writes?.length ? { keys: known } : {};
  }

  #repeated({ args, outcome }: EntryContent, { text, line }: SourceLine): Partial<EntryContent> {
    if (!mayRepeat(text)) return {};
    try {
      return {
        ...(args === undefined ? {} : { args: this.#repeats.restore(args) }),
        ...(outcome?.kind === 'ok'
          ? { outcome: { kind: 'ok', value: this.#repeats.restore(outcome.value) } }
          : {}),
      };
    } catch (error) {
      if (error instanceof RangeError) throw invalidLine(this.#file, line, error.message);
      throw error;
    }
  }
}

function headerOf(source: SourceFile): TapeHeader {
  const header = parseHeader(source, {
    kind: 'tape',
    versions: { format: tapeFormat, redaction: redactionVersion },
    again: recordAgain,
    known: headerFields,
  });
  const { format: _format, kind: _kind, redaction: _redaction, ...rest } = header;
  return rest as unknown as TapeHeader;
}

/** The command that makes the files of a case anew. */
export const recordAgain = (header: Readonly<Record<string, unknown>>): string =>
  `reprise test ${typeof header['case'] === 'string' ? header['case'] : '<case>'} --record`;
