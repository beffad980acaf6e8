import { basename } from 'node:path';
import { RepriseError, toErrorData } from '../../core/index.ts';
import { readRecordedText } from '../../effects/index.ts';
import {
  type ReadJournal,
  type RecordedEntry,
  type Recording,
  readJournal,
  witnessOf,
} from '../../effects/recording/index.ts';
import { withStatePlace } from '../../effects/redact/index.ts';
import type { RecordedActivity } from '../../engine/recording/index.ts';
import type { WorktreeState } from '../../git/delta/index.ts';
import {
  type DefinitionFiles,
  entriesFile,
  filesFile,
  journalFolders,
  marksOfJournal,
  runOfJournal,
} from '../../project/journal/index.ts';
import { readActivities } from '../record/distil.ts';

/** The part of a run that one process executed, read from its journal. */
export interface RunSegment {
  /** Folder of the journal. */
  readonly folder: string;
  /** Name of the command that it becomes in the case. */
  readonly step: string;
  readonly command: string;
  readonly args: readonly string[];
  readonly entries: readonly RecordedEntry[];
  readonly activities: readonly RecordedActivity[];
  readonly files: DefinitionFiles;
  /** Exit code of the process; `undefined` if it died. */
  readonly exit: number | undefined;
}

/** A run and, for a fork, the run that it was forked from. */
export interface Lineage {
  readonly runId: string;
  readonly forkedFrom?: Lineage | undefined;
}

/**
 * Reads the journals of a run and of its resumes, in order. The journals of a fork come after those of the run that it
 * was forked from. Throws CAPTURE_REFUSED.
 */
export async function segmentsOfRun(stateDir: string, lineage: Lineage): Promise<readonly RunSegment[]> {
  const folders = foldersOf(journalFolders(stateDir), lineage);
  const segments: RunSegment[] = [];
  for (const [index, folder] of folders.entries()) segments.push(await readSegment(folder, index));
  if (segments[0]?.command !== 'run' && segments[0]?.command !== 'worker') {
    throw refused(
      `the journal of the first process of run ${rootOf(lineage)} has been removed`,
      `Reprise keeps the journals of the newest 20 runs, up to 500 MB; ${runAgain}`,
    );
  }
  return segments;
}

const rootOf = ({ runId, forkedFrom }: Lineage): string => (forkedFrom ? rootOf(forkedFrom) : runId);

function foldersOf(all: readonly string[], { runId, forkedFrom }: Lineage): readonly string[] {
  const own = all.filter(folder => runOfJournal(folder) === runId);
  const [first] = own;
  if (first === undefined) {
    throw refused(
      `run ${runId} has no journal`,
      `Reprise keeps the journals of the newest 20 runs, up to 500 MB, and none with \`record: false\` in reprise.yaml; ${runAgain}`,
    );
  }
  const before = all.filter(folder => folder < first);
  return forkedFrom ? [...foldersOf(before, forkedFrom), ...own] : own;
}

async function readSegment(folder: string, index: number): Promise<RunSegment> {
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
      files: JSON.parse(readRecordedText({ file: filesFile(folder) })) as DefinitionFiles,
      exit: exitOf(journal),
    };
  } catch (error) {
    const why = toErrorData(error).message.replaceAll(folder, basename(folder));
    throw refused(`journal ${basename(folder)} is damaged: ${why}`, runAgain, error);
  }
}

function commandOf({ header }: ReadJournal): { readonly command: string; readonly args: readonly string[] } {
  const { command, args } = header;
  if (typeof command === 'string' && Array.isArray(args)) return { command, args: args.map(String) };
  throw new Error('its first line does not name the command');
}

const exitOf = ({ notes }: ReadJournal): number | undefined =>
  notes.map(({ exit }) => exit).find(exit => typeof exit === 'number');

const withOwnState = <T>(value: T): T => JSON.parse(withStatePlace(JSON.stringify(value))) as T;

/** The last effect that a process finished before it died. */
interface KilledAfter {
  readonly effect: string;
  /** Occurrence of the effect in the recording, from 1. */
  readonly nth: number;
}

/** A recording without the effects that a replay cannot repeat. */
export interface CutSegment extends RunSegment {
  readonly killedAfter?: KilledAfter | undefined;
}

/**
 * Truncates the recording of a process that died: drops the effects after the last finished one, because their outcomes
 * are unknown. Returns `undefined` if no effect finished, which leaves nothing to replay.
 */
export function cutSegment(segment: RunSegment): CutSegment | undefined {
  if (segment.exit !== undefined) return segment;
  const last = segment.entries.findLastIndex(isDone);
  const lastDone = segment.entries[last];
  if (!lastDone) return undefined;
  const entries = segment.entries.slice(0, last + 1);
  const effect = effectOf(lastDone);
  const nth = entries.filter(entry => isDone(entry) && effectOf(entry) === effect).length;
  // A replay does not start a script that was running when the process died, because the script would never end.
  const activities = segment.activities.filter(each => each.kind !== 'shell' || each.end !== undefined);
  return { ...segment, entries, activities, killedAfter: { effect, nth } };
}

const isDone = ({ outcome }: RecordedEntry): boolean => outcome?.kind === 'ok';

export const effectOf = ({ op }: Pick<RecordedEntry, 'op'>): string => op.replace(/\.(begin|end)$/, '');

/** Joins the recordings into one, in order; the lanes of each go below a lane named after its command. */
export function joinSegments(segments: readonly CutSegment[]): Recording {
  const entries = segments
    .flatMap(({ step, entries: own }) => own.map(entry => below(step, entry)))
    .map((entry, n) => ({ ...entry, n }));
  return { entries, witness: witnessOf(entries) };
}

const below = (step: string, entry: RecordedEntry): RecordedEntry => ({
  ...entry,
  lane: `${step}/${entry.lane}`,
  ...(namesLanes(entry) ? { args: entry.args.map(name => `${step}/${name}`) } : {}),
});

const namesLanes = (entry: RecordedEntry): entry is RecordedEntry & { readonly args: readonly string[] } =>
  /^lane\./.test(entry.op) && Array.isArray(entry.args);

/** Joins the recordings of sessions and scripts, naming their tasks after the commands of the case. */
export const joinActivities = (segments: readonly CutSegment[]): readonly RecordedActivity[] =>
  segments.flatMap(({ step, activities }) =>
    activities.map(each => ({ ...withOwnStashes(each), task: `${step}.${each.task}` })),
  );

/** Drops the stashes that the work did not touch: stashes belong to the whole repository, not to one workspace. */
function withOwnStashes(activity: RecordedActivity): RecordedActivity {
  const { before, after } = activity;
  if (before === null || before.stashes.length === 0) return activity;
  const untouched = new Set(
    before.stashes
      .map(({ commit }) => commit)
      .filter(commit => !after || after.stashes.some(stash => stash.commit === commit)),
  );
  const own = (state: WorktreeState): WorktreeState => ({
    ...state,
    stashes: state.stashes.filter(({ commit }) => !untouched.has(commit)),
  });
  return { ...activity, before: own(before), after: after && own(after) };
}

/** Returns the error for a run that cannot become a test case. */
export const refused = (message: string, hint: string, cause?: unknown): RepriseError =>
  new RepriseError('CAPTURE_REFUSED', message, { hint, ...(cause === undefined ? {} : { cause }) });

export const runAgain = 'run the workflow again and capture the new run';

export const captureAnother = 'capture another run of a task';

/** Returns the marks of the secrets that the processes of the run knew. */
export const marksOfSegments = (segments: readonly Pick<RunSegment, 'folder'>[]) =>
  segments.map(({ folder }) => marksOfJournal(folder)).filter(marks => marks !== undefined);
