import { fields, firstProblem, isRecord, text, wholeFrom } from '../../core/index.ts';
import { fileLimits, readRecordedText } from '../bounded-file.ts';
import { contentOf, entryProblem, kindFields, outcomeOf, valueFields } from './entry.ts';
import { journalFormat } from './journal.ts';
import { invalidLine, linesOf, parseHeader, parseLine, type SourceFile } from './json-lines.ts';
import { type RecordedEntry, type Recording, witnessOf } from './recording.ts';

export interface ReadJournal extends Recording {
  /** Header passed when the journal was opened, with `format` and `kind`. */
  readonly header: Readonly<Record<string, unknown>>;
  readonly notes: readonly Readonly<Record<string, unknown>>[];
}

export const readJournal = async (file: string): Promise<ReadJournal> =>
  parseJournal({ file, text: readRecordedText({ file, maxBytes: fileLimits.journal }) });

/**
 * Parses the complete lines of a journal. If a kill truncated the last line, that line is dropped. Effects that had
 * not ended have no outcome. Throws TAPE_INVALID or REPLAY_DIVERGED.
 */
export function parseJournal({ file, text }: SourceFile): ReadJournal {
  const whole = text.slice(0, text.lastIndexOf('\n') + 1);
  const header = parseHeader({ file, text: whole }, journalRules);
  const read: ReadLines = { kinds: new Map(), entries: new Map(), notes: [] };
  for (const line of linesOf({ file, text: whole }).slice(1)) {
    const problem = takeLine(read, parseLine(file, line));
    if (problem !== undefined) throw invalidLine(file, line.line, problem, damaged);
  }
  const entries = withoutGaps(read.entries);
  return { header, notes: read.notes, entries, witness: witnessOf(entries) };
}

const damaged = 'the journal is damaged, so this run cannot be captured; run the workflow again';

const journalRules = {
  kind: 'journal',
  versions: { format: journalFormat },
  again: () => 'run the workflow and capture the new run',
} as const;

const kindLine = fields({ of: wholeFrom(0), ...kindFields.required }, kindFields.optional);
const entryLine = fields(
  { n: wholeFrom(0), lane: text, i: wholeFrom(0), of: wholeFrom(0) },
  valueFields.optional,
);
const endingLine = fields({ n: wholeFrom(0) }, valueFields.optional);

type Line = Readonly<Record<string, unknown>>;

interface ReadLines {
  /** Kinds of entries, by number. */
  readonly kinds: Map<number, Pick<RecordedEntry, 'op' | 'keys'>>;
  readonly entries: Map<number, RecordedEntry>;
  readonly notes: Line[];
}

/** Adds a line. Returns a description of its problem, if it has one. */
function takeLine(read: ReadLines, line: Line): string | undefined {
  if (isRecord(line['note']) && Object.keys(line).length === 1) {
    read.notes.push(line['note']);
    return undefined;
  }
  if (!Object.hasOwn(line, 'n')) return takeKind(read, line);
  return Object.hasOwn(line, 'of') ? takeEntry(read, line) : takeEnding(read, line);
}

function takeKind({ kinds }: ReadLines, line: Line): string | undefined {
  const problem = firstProblem(kindLine, line);
  if (problem !== undefined) return problem;
  const of = line['of'] as number;
  if (kinds.has(of)) return `kind ${of} is defined twice`;
  const { op, keys } = contentOf(line);
  kinds.set(of, { op, ...(keys ? { keys } : {}) });
  return undefined;
}

function takeEntry({ kinds, entries }: ReadLines, line: Line): string | undefined {
  const problem = entryProblem(entryLine, line);
  if (problem !== undefined) return problem;
  const { n, lane, i, of } = line as { n: number; lane: string; i: number; of: number };
  const kind = kinds.get(of);
  if (!kind) return `kind ${of} is not defined`;
  if (entries.has(n)) return `entry ${n} occurs twice`;
  entries.set(n, { n, lane, i, ...contentOf(line), ...kind });
  return undefined;
}

/** An effect that took longer than a turn has two lines with the same number: its request and its outcome. */
function takeEnding({ entries }: ReadLines, line: Line): string | undefined {
  const problem = entryProblem(endingLine, line);
  if (problem !== undefined) return problem;
  const n = line['n'] as number;
  const known = entries.get(n);
  if (!known || known.outcome) return `entry ${n} is not in progress`;
  entries.set(n, { ...known, outcome: outcomeOf(line) });
  return undefined;
}

/** Keeps the entries before the first gap: a truncated batch may lack an entry that precedes an existing one. */
function withoutGaps(entries: ReadonlyMap<number, RecordedEntry>): readonly RecordedEntry[] {
  const inOrder: RecordedEntry[] = [];
  for (let entry = entries.get(0); entry; entry = entries.get(inOrder.length)) inOrder.push(entry);
  return inOrder;
}
