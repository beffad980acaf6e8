import { readFileSync } from 'node:fs';
import { basename } from 'node:path';
import { toErrorData } from '../../core/errors.ts';
import { type ReadJournal, readJournal } from '../../effects/recording/journal-reader.ts';
import type { RecordedEntry } from '../../effects/recording/recording.ts';
import type { Recording as RecordedActivity } from '../../engine/recording/session-file.ts';
import { journalFolders } from '../../project/journal/retention.ts';
import {
  type DefinitionFiles,
  entriesFile,
  filesFile,
  runOfJournal,
} from '../../project/journal/run-journal.ts';
import { refused, runAgain } from '../../testing/capture/refusal.ts';
import { readActivities } from '../record/distil.ts';

/** What one process did for a run, as its journal says. */
export interface Leg {
  /** Of the journal. */
  readonly folder: string;
  /** The step of the case that it becomes. */
  readonly step: string;
  readonly command: string;
  readonly args: readonly string[];
  readonly entries: readonly RecordedEntry[];
  readonly activities: readonly RecordedActivity[];
  readonly files: DefinitionFiles;
  /** How its process ended; `undefined` if it died. */
  readonly exit: number | undefined;
}

/** A run, and the one that it was forked from before its first journal was begun. */
export interface Lineage {
  readonly runId: string;
  readonly forkedFrom?: Lineage | undefined;
}

/**
 * The journals of a run and of its resumes, in their order; for a fork, those of the run that it was forked from before.
 * Throws CAPTURE_REFUSED.
 */
export async function legsOfRun(stateDir: string, lineage: Lineage): Promise<readonly Leg[]> {
  const folders = foldersOf(journalFolders(stateDir), lineage);
  const legs: Leg[] = [];
  for (const [index, folder] of folders.entries()) legs.push(await readLeg(folder, index));
  if (legs[0]?.command !== 'run' && legs[0]?.command !== 'worker') {
    throw refused(
      `the journal of the beginning of run ${rootOf(lineage)} is not there any more`,
      `the newest 20 runs are kept, up to 500 MB; ${runAgain}`,
    );
  }
  return legs;
}

const rootOf = ({ runId, forkedFrom }: Lineage): string => (forkedFrom ? rootOf(forkedFrom) : runId);

function foldersOf(all: readonly string[], { runId, forkedFrom }: Lineage): readonly string[] {
  const own = all.filter(folder => runOfJournal(folder) === runId);
  const [first] = own;
  if (first === undefined) {
    throw refused(
      `there is no journal of run ${runId}`,
      `the newest 20 runs are kept, up to 500 MB, and only while reprise.yaml does not say \`record: false\`; ${runAgain}`,
    );
  }
  const before = all.filter(folder => folder < first);
  return forkedFrom ? [...foldersOf(before, forkedFrom), ...own] : own;
}

async function readLeg(folder: string, index: number): Promise<Leg> {
  try {
    const journal = await readJournal(entriesFile(folder));
    const { command, args } = commandOf(journal);
    return {
      folder,
      step: index === 0 ? command : index === 1 ? 'resume' : `resume_${index}`,
      command,
      args,
      entries: withOwnState(journal.entries),
      activities: withOwnState(readActivities(folder)),
      files: JSON.parse(readFileSync(filesFile(folder), 'utf8')) as DefinitionFiles,
      exit: exitOf(journal),
    };
  } catch (error) {
    const why = toErrorData(error).message.replaceAll(folder, basename(folder));
    throw refused(`the journal ${basename(folder)} is damaged: ${why}`, runAgain, error);
  }
}

function commandOf({ header }: ReadJournal): { readonly command: string; readonly args: readonly string[] } {
  const { command, args } = header;
  if (typeof command === 'string' && Array.isArray(args)) return { command, args: args.map(String) };
  throw new Error('its first line does not say which command it is of');
}

const exitOf = ({ notes }: ReadJournal): number | undefined =>
  notes.map(({ exit }) => exit).find(exit => typeof exit === 'number');

/** A case has its state where projects have it by default, wherever that of the run was. */
const withOwnState = <T>(value: T): T => {
  const text = JSON.stringify(value);
  return text.includes('<PATH:state>')
    ? (JSON.parse(text.replaceAll('<PATH:state>', '<PATH:repo>/.reprise/state')) as T)
    : value;
};
