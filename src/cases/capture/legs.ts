import { readFileSync } from 'node:fs';
import { basename } from 'node:path';
import { RepriseError, toErrorData } from '../../core/errors.ts';
import { type ReadJournal, readJournal } from '../../effects/recording/journal-reader.ts';
import { type RecordedEntry, type Recording, witnessOf } from '../../effects/recording/recording.ts';
import type { Recording as RecordedActivity } from '../../engine/recording/session-file.ts';
import type { WorktreeState } from '../../git/delta/state.ts';
import { journalFolders } from '../../project/journal/retention.ts';
import {
  type DefinitionFiles,
  entriesFile,
  filesFile,
  runOfJournal,
} from '../../project/journal/run-journal.ts';
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

/** After which effect of a step its process died: `nth` counts from 1. */
interface KilledAfter {
  readonly effect: string;
  readonly nth: number;
}

/** A leg as far as a replay can go along with it. */
export interface CutLeg extends Leg {
  readonly killedAfter?: KilledAfter | undefined;
}

/**
 * Of a process that died, what came after the last effect that was done is left out: whether it happened, nobody knows.
 * A process that died before anything was done has nothing to replay, and gives `undefined`.
 */
export function cutLeg(leg: Leg): CutLeg | undefined {
  if (leg.exit !== undefined) return leg;
  const last = leg.entries.findLastIndex(isDone);
  const lastDone = leg.entries[last];
  if (!lastDone) return undefined;
  const entries = leg.entries.slice(0, last + 1);
  const effect = effectOf(lastDone);
  const nth = entries.filter(entry => isDone(entry) && effectOf(entry) === effect).length;
  // A script that was under way is never begun in a replay, because it never ends there.
  const activities = leg.activities.filter(each => each.kind !== 'shell' || each.end !== undefined);
  return { ...leg, entries, activities, killedAfter: { effect, nth } };
}

const isDone = ({ outcome }: RecordedEntry): boolean => outcome?.kind === 'ok';

export const effectOf = ({ op }: Pick<RecordedEntry, 'op'>): string => op.replace(/\.(begin|end)$/, '');

/** The legs as the steps of one case: one after another, each below a lane of its own. */
export function joinLegs(legs: readonly CutLeg[]): Recording {
  const entries = legs
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

/** What sessions and scripts did, named after the steps of the case. */
export const joinActivities = (legs: readonly CutLeg[]): readonly RecordedActivity[] =>
  legs.flatMap(({ step, activities }) =>
    activities.map(each => ({ ...withOwnStashes(each), task: `${step}.${each.task}` })),
  );

/** Stashes belong to the whole repository. Those that the work did not touch are nobody else's business. */
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

/** Why a run cannot become a test case, and what to do. */
export const refused = (message: string, hint: string, cause?: unknown): RepriseError =>
  new RepriseError('CAPTURE_REFUSED', message, { hint, ...(cause === undefined ? {} : { cause }) });

export const runAgain = 'run the workflow again, and capture that run';
