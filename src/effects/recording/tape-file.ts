import { fields, text, wholeFrom } from '../../core/schema.ts';
import type { Outcome } from '../../world/outcome.ts';
import { entryPlace, mayRepeat, RepeatReader, RepeatWriter } from '../../world/tape-file-repeats.ts';
import type { Keys } from '../effect.ts';
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

export interface Tape {
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
