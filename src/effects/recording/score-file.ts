import {
  fields,
  firstProblem,
  isRecord,
  map,
  name,
  names,
  type SchemaRule,
  text,
  wholeFrom,
} from '../../core/index.ts';
import {
  invalidLine,
  linesOf,
  parseHeader,
  parseLine,
  type SourceFile,
  type SourceLine,
} from './json-lines.ts';
import type { Witness } from './recording.ts';
import { recordAgain } from './tape-file.ts';

export interface ScoreHeader {
  readonly case: string;
  readonly witness: Witness;
  /** Head of the main branch at the end; null if there is none. */
  readonly main: { readonly ref: string; readonly commit: string } | null;
  /** SHA-256 of every other recorded file, by its path in the folder of the case. */
  readonly files: Readonly<Record<string, string>>;
}

/** One position of the schedule. Arguments and outcomes are on the tapes. */
export interface ScoreEntry {
  readonly n: number;
  /** Full name, such as `worker_a/engine#0/3`. */
  readonly lane: string;
  readonly i: number;
  readonly op: string;
}

export interface Score {
  readonly header: ScoreHeader;
  /** Entries, sorted by `n`. */
  readonly entries: readonly ScoreEntry[];
}

export interface ParsedScore extends Score {
  /** Line number of each entry. */
  readonly lines: readonly number[];
}

const scoreFormat = 2;

export const scoreFileName = (caseName: string): string => `${caseName}.score`;

/** Serializes a score. Equal scores give equal bytes. */
export function writeScore({ header, entries }: Score): string {
  const { case: caseName, witness, main, files } = header;
  const first = {
    format: scoreFormat,
    kind: 'score',
    case: caseName,
    witness: {
      mostOpen: witness.mostOpen,
      mostInFlight: witness.mostInFlight,
      switches: witness.switches,
    },
    main: main && { ref: main.ref, commit: main.commit },
    files: Object.fromEntries(Object.entries(files).sort(([a], [b]) => (a < b ? -1 : 1))),
  };
  const inOrder = [...entries].sort((a, b) => a.n - b.n);
  return `${[JSON.stringify(first), ...stretchesOf(inOrder).map(stretchLine)].join('\n')}\n`;
}

/** Consecutive entries of one lane. */
type ScoreStretch = readonly [ScoreEntry, ...ScoreEntry[]];

function stretchesOf(entries: readonly ScoreEntry[]): readonly ScoreStretch[] {
  const turns: [ScoreEntry, ...ScoreEntry[]][] = [];
  for (const entry of entries) {
    const turn = turns.at(-1);
    if (turn?.[0].lane === entry.lane) turn.push(entry);
    else turns.push([entry]);
  }
  return turns;
}

/** Serializes a turn: `n` and `i` of its first entry, and `op` as a list if it has several entries. */
const stretchLine = ([{ n, lane, i, op }, ...more]: ScoreStretch): string =>
  JSON.stringify({ n, lane, i, op: more.length === 0 ? op : [op, ...more.map(entry => entry.op)] });

const orNull = ({ expected, holds }: SchemaRule): SchemaRule => ({
  expected: `${expected}, or null`,
  holds: value => value === null || holds(value),
});

const texts: SchemaRule = {
  expected: 'a map of strings',
  holds: value => isRecord(value) && Object.values(value).every(item => typeof item === 'string'),
};

const headerFields = fields({
  format: wholeFrom(1),
  kind: text,
  case: text,
  witness: map(fields({ mostOpen: wholeFrom(0), mostInFlight: wholeFrom(0), switches: wholeFrom(0) })),
  main: orNull(map(fields({ ref: name, commit: name }))),
  files: texts,
});

const ops: SchemaRule = {
  expected: 'a non-empty string, or a list of them',
  holds: value => name.holds(value) || (Array.isArray(value) && value.length > 0 && names.holds(value)),
};

const stretchFields = fields({ n: wholeFrom(0), lane: name, i: wholeFrom(0), op: ops });

/** Parses a score. Throws TAPE_INVALID with the line, or REPLAY_DIVERGED if the score has another format version. */
export function parseScore({ file, text }: SourceFile): ParsedScore {
  const {
    format: _format,
    kind: _kind,
    ...header
  } = parseHeader(
    { file, text },
    { kind: 'score', versions: { format: scoreFormat }, again: recordAgain, known: headerFields },
  );
  const next = new Map<string, number>();
  const entries: ScoreEntry[] = [];
  const lines: number[] = [];
  for (const source of linesOf({ file, text }).slice(1)) {
    const { n, lane, i, op } = stretchIn(file, source);
    if (n !== entries.length) throw invalidLine(file, source.line, `n is ${n}, expected ${entries.length}`);
    const expected = next.get(lane) ?? 0;
    if (i !== expected) {
      throw invalidLine(file, source.line, `found entry ${i} of lane "${lane}", expected entry ${expected}`);
    }
    for (const [at, name] of [op].flat().entries()) {
      entries.push({ n: n + at, lane, i: i + at, op: name });
      lines.push(source.line);
    }
    next.set(lane, i + [op].flat().length);
  }
  return { header: header as unknown as ScoreHeader, entries, lines };
}

function stretchIn(file: string, source: SourceLine): Omit<ScoreEntry, 'op'> & { op: string | string[] } {
  const value = parseLine(file, source);
  const problem = firstProblem(stretchFields, value);
  if (problem !== undefined) throw invalidLine(file, source.line, problem);
  return value as unknown as ReturnType<typeof stretchIn>;
}
