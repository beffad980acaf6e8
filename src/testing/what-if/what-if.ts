import type { TestContext } from '../../cases/context.ts';
import { findCases } from '../../cases/manifest/find.ts';
import { readCase } from '../../cases/manifest/load.ts';
import { loadRecording } from '../../cases/replay/load.ts';
import { RepriseError } from '../../core/errors.ts';
import type { HistoryEvent } from '../../core/events.ts';
import { nearest } from '../../core/suggest.ts';
import type { RecordedEntry } from '../../effects/recording/recording.ts';
import { canonicalOrder, digestsOf } from '../../engine/history/digest.ts';
import { definitionPath } from '../../engine/state/graph.ts';
import {
  type CaseHistory,
  type Change,
  changesOf,
  diffText,
  type Outcome,
  outcomesOf,
  recordedHistories,
} from './outcomes.ts';
import { asRecorded, type Override, type Plan, planOf } from './override.ts';
import { type PlayedWhatIf, playWhatIf, type WhatIfCase } from './play.ts';

export interface ReplayOptions {
  readonly override?: Override | undefined;
  /**
   * From where on: a step of the case (`fix_readme`), or of a workflow in it (`fix_readme.land`). What comes before is
   * as it was recorded.
   */
  readonly from?: string | undefined;
  /** Where cases are, relative to the current folder; `cases` unless it is said. */
  readonly folder?: string | undefined;
}

/**
 * How far what was played can be trusted. `exact`: all of it was recorded like this. `counterfactual`: something is
 * otherwise, by an override or because of one. `inconclusive`: the recording cannot say what would have happened.
 */
export type WhatIfMark = 'exact' | 'counterfactual' | 'inconclusive';

/** What would have become of one run. */
export interface WhatIfRun {
  readonly runId: string;
  readonly workflow: string;
  /** The step of the case that started it. */
  readonly step: string;
  /** The histories without and with overrides, in canonical order. Paths are those of no machine: `<PATH:repo>`. */
  readonly before: readonly HistoryEvent[];
  readonly after: readonly HistoryEvent[];
  readonly ended: { readonly before: Outcome; readonly after: Outcome };
  /** Steps that ended otherwise. */
  readonly changed: readonly Change[];
  /** The same, to be read. */
  readonly diff: string;
  readonly marks: WhatIfMark;
}

export interface WhatIf {
  /** In the order in which they began. */
  readonly runs: readonly WhatIfRun[];
  /** The differences of all runs. */
  readonly diff: string;
  /** What whoever reads it should know: steps that were never recorded, answers to other prompts. */
  readonly notes: readonly string[];
}

/** Throws CASE_NOT_FOUND, NOT_RECORDED, and USAGE for an override that does not fit the case. */
export async function whatIf(
  name: string,
  { override = {}, from, folder }: ReplayOptions,
  context: TestContext,
): Promise<WhatIf> {
  const recorded = loadCaseNamed(name, folder, context);
  const { manifest, loaded } = recorded;
  const plan = planOf(override, from, manifest);
  const before = await playBefore(recorded);
  const after = await playWhatIf(recorded, plan);
  const changedBaseline = differing(before.histories, recordedHistories(loaded.recording.entries));
  const notes = [
    ...changedBaseline.map(
      runId => `run ${runId}: without overrides it already ends otherwise than recorded`,
    ),
    ...unusedNotes(plan, after),
    ...noteWork(after),
  ];
  const ids = new Set([...before.histories, ...after.histories].map(({ runId }) => runId));
  const runs = [...ids].map(runId => runOf(runId, { before, after, plan, changedBaseline }));
  return { runs, notes, diff: runs.map(({ diff }) => diff).join('\n') };
}

function loadCaseNamed(name: string, folder: string | undefined, context: TestContext): WhatIfCase {
  const { cases } = findCases({
    names: [name],
    cwd: context.cwd,
    ...(folder === undefined ? {} : { folder }),
  });
  const [found, ...others] = cases;
  if (!found || others.length > 0) {
    throw new RepriseError('USAGE', `${name} is ${found ? 'more than one case' : 'no case'}`, {
      hint: found ? `one of ${cases.map(each => each.displayFile).join(', ')}` : 'name the folder of a case',
    });
  }
  const manifest = readCase(found);
  if (manifest.form === 'worker_test') {
    throw new RepriseError(
      'USAGE',
      `${found.displayFile} was put together by hand, and has no recording to start from`,
      {
        hint: 'change its sessions instead',
      },
    );
  }
  const loaded = loadRecording(found, manifest, context.cwd);
  refuseMessages(loaded.recording.entries, found.displayFile);
  return { found, manifest, loaded, context };
}

/** Nobody knows when a message would have come, had everything else gone otherwise. */
function refuseMessages(entries: readonly RecordedEntry[], file: string): void {
  const came = entries.find(({ op, outcome }) => op === 'inbox.next.end' && outcome?.kind === 'ok');
  if (!came) return;
  throw new RepriseError(
    'USAGE',
    `${file}: a run was sent a message while it was at work, which cannot be replayed otherwise`,
    {
      hint: 'record a case in which messages wait before the run goes on: a resume after approve, signal or cancel',
    },
  );
}

async function playBefore(recorded: WhatIfCase): Promise<PlayedWhatIf> {
  const { found } = recorded;
  const hint = `see whether it still replays: reprise test ${found.name}`;
  const before = await playWhatIf(recorded, asRecorded).catch((error: unknown) => {
    if (!(error instanceof RepriseError) || error.code !== 'DEADLOCK') throw error;
    throw new RepriseError(
      'DEADLOCK',
      `${found.displayFile} cannot be played without its order: ${error.message}`,
      {
        hint,
        cause: error,
      },
    );
  });
  const [unknown] = [...before.unknown, ...before.timedOut];
  if (unknown === undefined) return before;
  throw new RepriseError(
    'REPLAY_DIVERGED',
    `${found.displayFile} cannot be played again: ${unknown} does not end`,
    {
      hint,
    },
  );
}

const differing = (now: readonly CaseHistory[], then: readonly CaseHistory[]): readonly string[] =>
  [...new Set([...now, ...then].map(({ runId }) => runId))].filter(runId => {
    const digest = (histories: readonly CaseHistory[]) => digestsOf(eventsOf(histories, runId)).history;
    return digest(now) !== digest(then);
  });

const eventsOf = (histories: readonly CaseHistory[], runId: string): readonly HistoryEvent[] =>
  histories.find(history => history.runId === runId)?.events ?? [];

interface Plays {
  readonly before: PlayedWhatIf;
  readonly after: PlayedWhatIf;
  readonly plan: Plan;
  readonly changedBaseline: readonly string[];
}

function runOf(runId: string, { before, after, plan, changedBaseline }: Plays): WhatIfRun {
  const events = { before: eventsOf(before.histories, runId), after: eventsOf(after.histories, runId) };
  const sides = { before: canonicalOrder(events.before), after: canonicalOrder(events.after) };
  const outcomes = { before: outcomesOf(events.before), after: outcomesOf(events.after) };
  const histories = [...before.histories, ...after.histories].filter(history => history.runId === runId);
  const steps = [...new Set(histories.flatMap(history => history.steps))];
  const [step = ''] = steps;
  const workflow = workflowOf([...sides.before, ...sides.after]);
  const marks = changedBaseline.includes(runId) ? 'inconclusive' : markOf(steps, { after, plan });
  return {
    runId,
    workflow,
    step,
    ...sides,
    ended: { before: outcomes.before.run, after: outcomes.after.run },
    changed: changesOf(outcomes.before, outcomes.after),
    diff: diffText(`run of ${workflow} in step ${step} (${marks})`, outcomes.before, outcomes.after),
    marks,
  };
}

const workflowOf = (events: readonly HistoryEvent[]): string =>
  events.flatMap(event => (event.type === 'run.started' ? [event.data.workflow] : []))[0] ?? '';

function markOf(steps: readonly string[], { after, plan }: Pick<Plays, 'after' | 'plan'>): WhatIfMark {
  const served = steps.flatMap(step => after.served.get(step) ?? []);
  const kinds = new Set(served.flatMap(work => work.applied().map(({ kind }) => kind)));
  const isUnknown = steps.some(
    step => after.unknown.some(unit => unit.startsWith(`${step}.`)) || after.timedOut.includes(step),
  );
  if (isUnknown || kinds.has('inconclusive')) return 'inconclusive';
  const isOther = plan.startMs !== undefined || steps.some(step => plan.touched.has(step));
  return isOther || kinds.has('counterfactual') || served.some(work => work.stale().length > 0)
    ? 'counterfactual'
    : 'exact';
}

function noteWork({ served, unknown, timedOut }: PlayedWhatIf): readonly string[] {
  const works = [...served.values()];
  return [
    ...unknown.map(
      unit =>
        `${unit}: nothing recorded says how it would have ended; give it one: override.outputs['${unit}']`,
    ),
    ...timedOut.map(step => `step ${step} had not ended when its time was up`),
    ...works
      .flatMap(work => work.stale())
      .map(({ role, task, what }) => `${task}: ${what} of ${role} is another one than was recorded`),
    ...works
      .flatMap(work => work.applied())
      .filter(({ kind }) => kind !== 'exact')
      .map(
        ({ file, kind, why }) => `${file} was applied to other files than it was recorded on: ${why ?? kind}`,
      ),
  ];
}

/** Throws USAGE for a step that no workflow of the case has. */
function unusedNotes(plan: Plan, { histories }: PlayedWhatIf): readonly string[] {
  return plan.unused().map(({ key, step, unit }) => {
    const known = histories
      .filter(history => history.steps.includes(step))
      .flatMap(({ events }) => events)
      .flatMap(event =>
        event.type === 'run.started' || event.type === 'run.resumed' ? (event.data.steps ?? []) : [],
      );
    if (known.includes(definitionPath(unit)))
      return `${key} never came to its work, so that its override was not used`;
    const guess = nearest(unit, known);
    throw new RepriseError('USAGE', `an override names ${key}, and no run in step ${step} has such a step`, {
      hint: guess ? `did you mean ${step}.${guess}?` : `steps: ${known.join(', ') || 'none'}`,
    });
  });
}
