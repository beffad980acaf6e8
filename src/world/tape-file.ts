import { fields, text, wholeFrom } from '../core/fields.ts';
import {
  argsJson,
  contentFields,
  contentOf,
  type EntryContent,
  entryProblem,
  keysJson,
  outcomeJson,
} from './journal-entry.ts';
import { invalidLine, linesOf, parseHeader, parseLine, type SourceFile } from './tape-file-lines.ts';

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

const tapeFormat = 1;

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
  return `${[JSON.stringify(first), ...inOrder.map(entryLine)].join('\n')}\n`;
}

const entryLine = ({ lane, i, op, keys, args, outcome }: TapeEntry): string =>
  `{"lane":${JSON.stringify(lane)},"i":${i},"op":${JSON.stringify(op)}${keysJson(keys)}${argsJson(args)}${outcomeJson(outcome)}}`;

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
  { lane: text, i: wholeFrom(0), ...contentFields.required },
  contentFields.optional,
);

/** Throws TAPE_INVALID with the line, or REPLAY_DIVERGED if it is of another format. */
export function parseTape({ file, text }: SourceFile): ParsedTape {
  const header = headerOf({ file, text });
  const next = new Map<string, number>();
  const lines = linesOf({ file, text }).slice(1);
  const entries = lines.map((line): TapeEntry => {
    const value = parseLine(file, line);
    const problem = entryProblem(entryFields, value);
    if (problem !== undefined) throw invalidLine(file, line.line, problem);
    const { lane, i } = value as { readonly lane: string; readonly i: number };
    const expected = next.get(lane) ?? 0;
    if (i !== expected) {
      throw invalidLine(file, line.line, `entry ${i} of lane "${lane}", expected its entry ${expected}`);
    }
    next.set(lane, i + 1);
    return { lane, i, ...contentOf(value) };
  });
  return { header, entries, lines: lines.map(({ line }) => line) };
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
