import { fields, firstProblem, isRecord, map, name, type Rule, text, wholeFrom } from '../core/fields.ts';
import type { Witness } from './recording.ts';
import { recordAgain } from './tape-file.ts';
import { invalidLine, linesOf, parseHeader, parseLine, type SourceFile } from './tape-file-lines.ts';

export interface ScoreHeader {
  readonly case: string;
  readonly witness: Witness;
  /** Where the main branch was in the end; null if there is none. */
  readonly main: { readonly ref: string; readonly commit: string } | null;
  /** SHA-256 of every other recorded file, by its path in the folder of the case. */
  readonly files: Readonly<Record<string, string>>;
}

/** Whose turn it was: the order and nothing else. What was asked and answered is on the tapes. */
export interface ScoreEntry {
  readonly n: number;
  /** Full name: `worker_a/engine#0/3`. */
  readonly lane: string;
  readonly i: number;
  readonly op: string;
}

export interface Score {
  readonly header: ScoreHeader;
  /** By `n`. */
  readonly entries: readonly ScoreEntry[];
}

export interface ParsedScore extends Score {
  /** The line of each entry. */
  readonly lines: readonly number[];
}

const scoreFormat = 1;

export const scoreFileName = (caseName: string): string => `${caseName}.score`;

/** Equal scores give equal bytes. */
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
  return `${[JSON.stringify(first), ...inOrder.map(entryLine)].join('\n')}\n`;
}

const entryLine = ({ n, lane, i, op }: ScoreEntry): string => JSON.stringify({ n, lane, i, op });

const orNull = ({ expected, holds }: Rule): Rule => ({
  expected: `${expected}, or null`,
  holds: value => value === null || holds(value),
});

const texts: Rule = {
  expected: 'a map of texts',
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

const entryFields = fields({ n: wholeFrom(0), lane: name, i: wholeFrom(0), op: name });

/** Throws TAPE_INVALID with the line, or REPLAY_DIVERGED if it is of another format. */
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
  const lines = linesOf({ file, text }).slice(1);
  const entries = lines.map((line, at): ScoreEntry => {
    const value = parseLine(file, line);
    const problem = firstProblem(entryFields, value);
    if (problem !== undefined) throw invalidLine(file, line.line, problem);
    const entry = value as unknown as ScoreEntry;
    if (entry.n !== at) throw invalidLine(file, line.line, `n is ${entry.n}, expected ${at}`);
    const expected = next.get(entry.lane) ?? 0;
    if (entry.i !== expected) {
      throw invalidLine(
        file,
        line.line,
        `entry ${entry.i} of lane "${entry.lane}", expected its entry ${expected}`,
      );
    }
    next.set(entry.lane, entry.i + 1);
    return entry;
  });
  return { header: header as unknown as ScoreHeader, entries, lines: lines.map(({ line }) => line) };
}
