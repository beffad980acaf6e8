import { readFile } from 'node:fs/promises';
import { fields, isRecord, text, wholeFrom } from '../core/fields.ts';
import { journalFormat } from './journal.ts';
import { contentFields, contentOf, entryProblem, outcomeOf } from './journal-entry.ts';
import type { RecordedEntry, Recording } from './recording.ts';
import {
  invalidLine,
  linesOf,
  parseHeader,
  parseLine,
  type SourceFile,
  type SourceLine,
} from './tape-file-lines.ts';
import { witnessOf } from './witness.ts';

export interface ReadJournal extends Recording {
  /** What was given when it was opened, with `format` and `kind`. */
  readonly header: Readonly<Record<string, unknown>>;
  readonly notes: readonly Readonly<Record<string, unknown>>[];
}

export const readJournal = async (file: string): Promise<ReadJournal> =>
  parseJournal({ file, text: await readFile(file, 'utf8') });

/**
 * What a journal says, as far as it is whole. A kill may have cut off its last line, with what belongs to it; what was
 * granted and has not ended by then has no outcome.
 */
export function parseJournal({ file, text }: SourceFile): ReadJournal {
  const whole = text.slice(0, text.lastIndexOf('\n') + 1);
  const header = parseHeader({ file, text: whole }, journalRules);
  const entries = new Map<number, RecordedEntry>();
  const notes: Readonly<Record<string, unknown>>[] = [];
  for (const line of linesOf({ file, text: whole }).slice(1)) {
    const value = parseLine(file, line);
    if (isRecord(value['note']) && Object.keys(value).length === 1) notes.push(value['note']);
    else addEntry(entries, value, { file, line });
  }
  const inOrder = withoutGaps(entries);
  return { header, notes, entries: inOrder, witness: witnessOf(inOrder) };
}

const journalRules = {
  kind: 'journal',
  versions: { format: journalFormat },
  again: () => 'run the workflow, and capture that run',
} as const;

const entryFields = fields(
  { n: wholeFrom(0), lane: text, i: wholeFrom(0), ...contentFields.required },
  contentFields.optional,
);
const endingFields = fields({ n: wholeFrom(0) }, contentFields.optional);

/** An effect that took longer than a turn has two lines: what was asked, and, with the same number, how it ended. */
function addEntry(
  entries: Map<number, RecordedEntry>,
  value: Readonly<Record<string, unknown>>,
  { file, line }: { readonly file: string; readonly line: SourceLine },
): void {
  const isEnding = !Object.hasOwn(value, 'op');
  const problem = entryProblem(isEnding ? endingFields : entryFields, value);
  if (problem !== undefined) throw invalidLine(file, line.line, problem, damaged);
  const n = value['n'] as number;
  const known = entries.get(n);
  if (isEnding) {
    if (!known || known.outcome) throw invalidLine(file, line.line, `entry ${n} is not under way`, damaged);
    entries.set(n, { ...known, outcome: outcomeOf(value) });
  } else {
    if (known) throw invalidLine(file, line.line, `there are two entries ${n}`, damaged);
    entries.set(n, { n, lane: value['lane'] as string, i: value['i'] as number, ...contentOf(value) });
  }
}

const damaged = 'the journal is damaged, so this run cannot be captured; run the workflow again';

/** In a batch that was cut off, an entry may be missing that was granted before one that is there. */
function withoutGaps(entries: ReadonlyMap<number, RecordedEntry>): readonly RecordedEntry[] {
  const inOrder: RecordedEntry[] = [];
  for (let entry = entries.get(0); entry; entry = entries.get(inOrder.length)) inOrder.push(entry);
  return inOrder;
}
