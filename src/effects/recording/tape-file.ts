import { fields, isRecord, text, wholeFrom } from '../../core/index.ts';
import type { EffectOutcome, Keys } from '../effect.ts';
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

/** Values whose JSON is shorter are written out each time, so that a reader rarely has to look elsewhere. */
const shortestRepeat = 120;

/** The only field of a reference to a value of an earlier entry. */
const sameAs = 'same';

/** Path of an entry, such as `engine#0/3:17`; paths of values start with it. */
const entryPlace = (lane: string, i: number): string => `${lane}:${i}`;

/** Replaces a long value that is already on the tape with a reference: `{"same": "engine#0:9/args/events/0/data"}`. */
class RepeatWriter {
  readonly #places = new Map<string, string>();

  /** `place` is the path of the value, such as `engine#0:9/args`. */
  shorten(value: unknown, position: string): unknown {
    const text = JSON.stringify(value);
    if (text === undefined || isPlain(text)) return value;
    return this.#shorten(JSON.parse(text), position);
  }

  #shorten(value: unknown, position: string): unknown {
    const text = JSON.stringify(value);
    if (isPlain(text)) return value;
    if (text.length >= shortestRepeat) {
      const first = this.#places.get(text);
      if (first !== undefined) return { [sameAs]: first };
      this.#places.set(text, position);
    }
    if (Array.isArray(value)) return value.map((item, at) => this.#shorten(item, `${position}/${at}`));
    if (!isRecord(value)) return value;
    if (isReference(value)) return { [sameAs]: [value] };
    return Object.fromEntries(
      Object.entries(value).map(([key, item]) => [key, this.#shorten(item, `${position}/${escaped(key)}`)]),
    );
  }
}

/** Whether the JSON contains neither a long value nor anything that looks like a reference. */
const isPlain = (text: string): boolean => text.length < shortestRepeat && !mayRepeat(text);

/** Whether the JSON may contain a reference. */
const mayRepeat = (text: string): boolean => text.includes(`{"${sameAs}":`);

const isReference = (value: Readonly<Record<string, unknown>>): boolean =>
  Object.hasOwn(value, sameAs) && Object.keys(value).length === 1;

const escaped = (key: string): string => key.replaceAll('~', '~0').replaceAll('/', '~1');
const unescaped = (key: string): string => key.replaceAll('~1', '/').replaceAll('~0', '~');

/** Resolves the references that `RepeatWriter` wrote. */
class RepeatReader {
  readonly #entries = new Map<string, Readonly<Record<string, unknown>>>();
  /** References that are being resolved, to detect cycles. */
  readonly #resolving = new Set<string>();

  /** Adds an entry as it is on its line. Later entries, and later parts of the entry itself, may refer to it. */
  add(position: string, entry: Readonly<Record<string, unknown>>): void {
    this.#entries.set(position, entry);
  }

  /** Throws a `RangeError` for a reference without a target. */
  restore(value: unknown): unknown {
    if (Array.isArray(value)) return value.map(item => this.restore(item));
    if (!isRecord(value)) return value;
    if (!isReference(value))
      return Object.fromEntries(Object.entries(value).map(([key, item]) => [key, this.restore(item)]));
    const target = value[sameAs];
    if (Array.isArray(target)) return target[0];
    return this.#find(String(target));
  }

  #find(position: string): unknown {
    const [, entry = '', rest = ''] = /^(.*:\d+)\/(.*)$/s.exec(position) ?? [];
    let found: unknown = this.#entries.get(entry);
    for (const key of rest.split('/').map(unescaped)) {
      const holds = typeof found === 'object' && found !== null && Object.hasOwn(found, key);
      found = holds ? (found as Readonly<Record<string, unknown>>)[key] : undefined;
    }
    if (found === undefined || this.#resolving.has(position)) {
      throw new RangeError(`${sameAs}: no earlier value at "${position}"`);
    }
    this.#resolving.add(position);
    const restored = this.restore(found);
    this.#resolving.delete(position);
    return restored;
  }
}

/** Origin of a tape. */
export interface TapeHeader {
  readonly case: string;
  readonly step: string;
  /** Version of Reprise. `git` and `node` are versions too. */
  readonly reprise: string;
  readonly git: string;
  readonly node: string;
  readonly recorded_at: string;
}

/** An entry without its position in the schedule, so that the tape of a step is independent of the timing of others. */
export interface TapeEntry extends EntryContent {
  /** Name of the lane below the step's own lane, such as `engine#0/3`; empty for the step's own lane. */
  readonly lane: string;
  readonly i: number;
}

interface Tape {
  readonly header: TapeHeader;
  /** Entries, grouped by lane. */
  readonly entries: readonly TapeEntry[];
}

export interface ParsedTape extends Tape {
  /** Line number of each entry. */
  readonly lines: readonly number[];
}

const tapeFormat = 2;

/** Version of the redaction rules. Increase it with every change, because both sides of a comparison must agree. */
const redactionVersion = 1;

export const tapeFileName = (caseName: string, step: string): string => `${caseName}__${step}.vcr`;

/** Serializes a tape. Equal tapes give equal bytes, regardless of the order of their entries. */
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
 * Serializes entries without repeating earlier lines: a line without `lane` belongs to the lane of the line before, a
 * line without `keys` has the keys of the last entry with the same `op`, and a long value is written once.
 */
class LineWriter {
  #lane: string | undefined;
  readonly #keys = new Map<string, string>();
  readonly #repeats = new RepeatWriter();

  line({ lane, i, op, keys, args, outcome }: TapeEntry): string {
    const laneJson = lane === this.#lane ? '' : `"lane":${JSON.stringify(lane)},`;
    this.#lane = lane;
    const position = entryPlace(lane, i);
    const pending = argsJson(this.#repeats.shorten(args, `${position}/args`));
    const answered = outcomeJson(this.#shortened(outcome, `${position}/ok`));
    return `{${laneJson}"i":${i},"op":${JSON.stringify(op)}${this.#keysJson(op, keys)}${pending}${answered}}`;
  }

  #keysJson(op: string, keys: Keys | undefined): string {
    const [before = '', now] = [this.#keys.get(op), keysJson(keys)];
    this.#keys.set(op, now);
    if (now === before) return '';
    return now === '' ? ',"keys":{}' : now;
  }

  #shortened(outcome: EffectOutcome | undefined, position: string): EffectOutcome | undefined {
    return outcome?.kind === 'ok'
      ? { kind: 'ok', value: this.#repeats.shorten(outcome.value, position) }
      : outcome;
  }
}

/** Sorts `a` before `a/2` before `a/10` before `a/engine#0`. */
function compareLanes(a: string, b: string): number {
  const [left, right] = [a.split('/'), b.split('/')];
  for (const [at, name] of left.entries()) {
    const other = right[at];
    if (other === undefined) return 1;
    if (name !== other) return forkNumber(name) - forkNumber(other) || (name < other ? -1 : 1);
  }
  return left.length - right.length;
}

/** Names that are not numbers come last. */
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

/** Parses a tape. Throws TAPE_INVALID with the line, or REPLAY_DIVERGED if the tape has another format version. */
export function parseTape({ file, text }: SourceFile): ParsedTape {
  const header = headerOf({ file, text });
  const lines = linesOf({ file, text }).slice(1);
  const reader = new LineReader(file);
  return { header, entries: lines.map(line => reader.entry(line)), lines: lines.map(({ line }) => line) };
}

/** Restores the fields and values that lines omit. */
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
        `found entry ${i} of lane "${lane}", expected entry ${expected}`,
      );
    }
    this.#next.set(lane, i + 1);
    this.#repeats.add(entryPlace(lane, i), value);
    const { keys, ...content } = contentOf(value);
    return { lane, i, ...content, ...this.#repeated(content, line), ...this.#keysOf(content.op, keys) };
  }

  #laneOf(value: Readonly<Record<string, unknown>>, { line }: SourceLine): string {
    const lane = (value['lane'] as string | undefined) ?? this.#lane;
    if (lane === undefined) throw invalidLine(this.#file, line, 'lane: expected a string');
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

/** Returns the command that records the case again. */
export const recordAgain = (header: Readonly<Record<string, unknown>>): string =>
  `reprise test ${typeof header['case'] === 'string' ? header['case'] : '<case>'} --record`;
