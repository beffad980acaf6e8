import type { TestContext } from '../../cases/index.ts';
import { findCases, readCase } from '../../cases/manifest/index.ts';
import { loadRecording } from '../../cases/replay/index.ts';
import { type HistoryEvent, nearest, RepriseError } from '../../core/index.ts';
import type { RecordedEntry } from '../../effects/recording/index.ts';
import { canonicalOrder, digestsOf } from '../../engine/history/index.ts';
import { definitionPath } from '../../engine/state/index.ts';
import {
  type CaseHistory,
  type Change,
  changesOf,
  diffText,
  type Outcome,
  outcomesOf,
  recordedHistories,
} from './outcomes.ts';
import { asRecorded, type Override, type OverridePlan, planOf } from './override.ts';
import { type PlayedWhatIf, playWhatIf, type WhatIfCase } from './play.ts';

export interface ReplayOptions {
  readonly override?: Override | undefined;
  /**
   * Point from which overrides apply: a command of the case (`fix_readme`), or a step of its workflow
   * (`fix_readme.land`). Everything before it is as recorded. Defaults to the start of the case.
   */
  readonly from?: string | undefined;
  /** Folder of all cases, relative to the current folder. Defaults to `cases`. */
  readonly folder?: string | undefined;
}

/**
 * Trustworthiness of a result. `exact`: everything is as recorded. `counterfactual`: an override, or a consequence of one,
 * changed something. `inconclusive`: the recording does not show what would have happened.
 */
export type WhatIfMark = 'exact' | 'counterfactual' | 'inconclusive';

/** One run without and with overrides. */
export interface WhatIfRun {
  readonly runId: string;
  readonly workflow: string;
  /** Command of the case that started the run. */
  readonly step: string;
  /** History without overrides, in canonical order. Paths are placeholders such as `<PATH:repo>`. */
  readonly before: readonly HistoryEvent[];
  /** History with overrides, in canonical order. */
  readonly after: readonly HistoryEvent[];
  readonly ended: { readonly before: Outcome; readonly after: Outcome };
  /** Steps whose outcomes differ. */
  readonly changed: readonly Change[];
  /** Text of the differences, for people. */
  readonly diff: string;
  readonly marks: WhatIfMark;
}

export interface WhatIf {
  /** Runs in the order in which they started. */
  readonly runs: readonly WhatIfRun[];
  /** Text of the differences of all runs. */
  readonly diff: string;
  /** Caveats, such as steps without a recording or replies to another prompt. */
  readonly notes: readonly string[];
}

/**
 * Replays a case without and with overrides and compares the histories. Throws CASE_NOT_FOUND, NOT_RECORDED, and USAGE for
 * an override that does not fit the case.
 */
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
      runId => `run ${runId}: even without overrides, the replay differs from the recording`,
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
    throw new RepriseError('USAGE', found ? `${name} matches several cases` : `${name} is not a case`, {
      hint: found
        ? `name one of ${cases.map(each => each.displayFile).join(', ')}`
        : 'pass the name or the folder of a case',
    });
  }
  const manifest = readCase(found);
  if (manifest.form === 'worker_test') {
    throw new RepriseError(
      'USAGE',
      `${found.displayFile} is a handwritten \`worker_test\` without a recording, so it cannot be replayed with overrides`,
      {
        hint: 'edit its sessions instead',
      },
    );
  }
  const loaded = loadRecording(found, manifest, context.cwd);
  refuseMessages(loaded.recording.entries, found.displayFile);
  return { found, manifest, loaded, context };
}

/** Throws USAGE if a run received a message: when it would arrive in a changed run is unknown. */
function refuseMessages(entries: readonly RecordedEntry[], file: string): void {
  const message = entries.find(({ op, outcome }) => op === 'inbox.next.end' && outcome?.kind === 'ok');
  if (!message) return;
  throw new RepriseError(
    'USAGE',
    `${file}: a run received a message while it was running, so the case cannot be replayed with overrides`,
    {
      hint: 'record a case in which `approve`, `signal` or `cancel` comes before a `resume`',
    },
  );
}

async function playBefore(recorded: WhatIfCase): Promise<PlayedWhatIf> {
  const { found } = recorded;
  const hint = `check that it still replays: reprise test ${found.name}`;
  const before = await playWhatIf(recorded, asRecorded).catch((error: unknown) => {
    if (!(error instanceof RepriseError) || error.code !== 'DEADLOCK') throw error;
    throw new RepriseError(
      'DEADLOCK',
      `${found.displayFile} cannot be replayed outside its recorded order: ${error.message}`,
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
    `${found.displayFile} cannot be replayed: ${unknown} does not end`,
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

interface WhatIfPlays {
  readonly before: PlayedWhatIf;
  readonly after: PlayedWhatIf;
  readonly plan: OverridePlan;
  readonly changedBaseline: readonly string[];
}

function runOf(runId: string, { before, after, plan, changedBaseline }: WhatIfPlays): WhatIfRun {
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
    diff: diffText(`run of ${workflow} in command ${step} (${marks})`, outcomes.before, outcomes.after),
    marks,
  };
}

const workflowOf = (events: readonly HistoryEvent[]): string =>
  events.flatMap(event => (event.type === 'run.started' ? [event.data.workflow] : []))[0] ?? '';

function markOf(steps: readonly string[], { after, plan }: Pick<WhatIfPlays, 'after' | 'plan'>): WhatIfMark {
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
    ...unknown.map(unit => `${unit}: its end is not in the recording; set override.outputs['${unit}']`),
    ...timedOut.map(step => `command ${step} did not end within its time limit`),
    ...works
      .flatMap(work => work.stale())
      .map(({ role, task, what }) => `${task}: ${what} of ${role} has changed since it was recorded`),
    ...works
      .flatMap(work => work.applied())
      .filter(({ kind }) => kind !== 'exact')
      .map(
        ({ file, kind, why }) =>
          `${file} was applied to files that differ from the recorded ones: ${why ?? kind}`,
      ),
  ];
}

/** Notes the overrides that were not used. Throws USAGE for a step that no workflow of the case has. */
function unusedNotes(plan: OverridePlan, { histories }: PlayedWhatIf): readonly string[] {
  return plan.unused().map(({ key, step, unit }) => {
    const known = histories
      .filter(history => history.steps.includes(step))
      .flatMap(({ events }) => events)
      .flatMap(event =>
        event.type === 'run.started' || event.type === 'run.resumed' ? (event.data.steps ?? []) : [],
      );
    if (known.includes(definitionPath(unit))) return `${key} did not run, so its override was not used`;
    const guess = nearest(unit, known);
    throw new RepriseError(
      'USAGE',
      `override for \`${key}\`: no run of command ${step} has a step \`${unit}\``,
      {
        hint: guess ? `did you mean ${step}.${guess}?` : `steps: ${known.join(', ') || 'none'}`,
      },
    );
  });
}
