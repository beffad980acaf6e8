import { join } from 'node:path';
import { lazySessions } from '../../agents/index.ts';
import { type HistoryEvent, type Ids, RepriseError } from '../../core/index.ts';
import {
  createConductedWorld,
  type PendingEffect,
  type SchedulerFactory,
} from '../../effects/conductor/index.ts';
import { allTracers, type EffectOutcome } from '../../effects/index.ts';
import { openJournal } from '../../effects/recording/index.ts';
import { createRedactor, type Redactor, secretsOf } from '../../effects/redact/index.ts';
import { roundRobinScheduler } from '../../effects/schedulers/index.ts';
import { createSessionRecorder, type RecordedActivity } from '../../engine/recording/index.ts';
import { unitOf } from '../../engine/state/index.ts';
import { openRepository, type Repository } from '../../git/index.ts';
import { runShellStep } from '../../process/index.ts';
import { type Host, openStore } from '../../project/index.ts';
import { settled, stagePaths, type TestContext } from '../context.ts';
import type { CaseManifest } from '../manifest/manifest.ts';
import { countedIds, virtualClock } from '../perform/clock.ts';
import { CasePerformance } from '../perform/perform.ts';
import { type Stage, stateOf } from '../perform/stage.ts';
import { environmentOf } from '../record/record.ts';
import { firstMoment, taskOf } from '../replay/replay.ts';
import { createVcr } from '../replay/serve.ts';
import { orStopped } from '../snapshot/snapshot.ts';
import { captureAnother, refused } from './segments.ts';
import type { WorkerRun } from './worker.ts';

/** Recorded sessions and scripts, ready to be replayed. */
export interface RecordedWork {
  readonly sessions: readonly RecordedActivity[];
  blob(sha: string): Uint8Array;
}

export interface Reenactment {
  readonly manifest: CaseManifest;
  readonly context: TestContext;
  readonly run: WorkerRun;
  readonly draft: RecordedWork;
  /** Temporary folder in which the journal is written. */
  readonly workplace: string;
}

export interface Reenacted {
  /** Folder of the journal. */
  readonly journal: string;
  readonly history: readonly HistoryEvent[];
  readonly exit: number;
  readonly redactor: Redactor;
  readonly repository: Repository;
}

const defaultTimeoutMs = 10 * 60_000;

/** Runs a task again with a single worker, replaying its recorded agents and scripts. Throws CAPTURE_REFUSED. */
export async function reenact(
  stage: Stage,
  { manifest, context, run, draft, workplace }: Reenactment,
): Promise<Reenacted> {
  const [step] = manifest.steps;
  if (!step) throw new RepriseError('INTERNAL', 'the case of a worker has no step');
  const journal = join(workplace, 'journal');
  const env = { ...environmentOf(context), HOME: stage.home };
  const redactor = createRedactor({ paths: stagePaths(stage), secrets: secretsOf(context.env) });
  const problems: string[] = [];
  const note = (message: string) => void problems.push(message);
  const repository = await openRepository({ cwd: stage.repo, env });
  const clock = virtualClock(firstMoment(run.segment.entries));
  const performance = new CasePerformance({
    manifest,
    stage,
    program: context.program,
    env,
    clock,
    defaultTimeoutMs,
  });
  const vcr = createVcr({
    sessions: draft.sessions,
    task: ({ step: name, worker }) => unitOf(name, worker),
    redactor,
    blobs: sha => draft.blob(sha),
    repository: async () => repository,
    applyDeltas: true,
    live: [],
    openSession: lazySessions,
    runShell: runShellStep,
    rerecord: '',
  });
  const recorder = createSessionRecorder({
    folder: journal,
    redactor,
    repository: async () => repository,
    projectRoot: stage.repo,
    task: unit => taskOf(step.name, unit),
    snapshotProject: true,
    openSession: settled(vcr.openSession, manifest),
    runShell: vcr.runShell,
    onProblem: note,
  });
  const file = join(journal, 'entries.jsonl');
  const entries = openJournal({ file, redactor, header: {}, onNotice: note });
  const world = createConductedWorld({
    scheduler: guided(run, roundRobinScheduler(clock), time => clock.advanceTo(time)),
    tracer: allTracers([entries.tracer, recorder.tracer, performance.tracer]),
  });
  const host: Host = {
    world,
    clock,
    ids: idsOf(run),
    openSession: recorder.openSession,
    runShell: recorder.runShell,
  };
  try {
    const [played] = await orStopped(
      performance.play({ world, hostOf: () => host, onLeft: async () => {} }),
      world,
    );
    await world.finish();
    const troubles = [
      ...problems,
      ...vcr.problems().map(({ message }) => message),
      ...vcr.leftOver().map(left => `${left} was recorded but not used`),
      ...(played?.end.kind === 'exited' ? [] : ['the worker did not exit']),
    ];
    if (troubles.length > 0 || played?.end.kind !== 'exited') throw cannotBeDoneAgain(troubles);
    const store = await openStore(stateOf(stage.repo), { readonly: true });
    try {
      const history = await store.read(run.runId);
      return { journal, history, exit: played.end.code, redactor, repository };
    } finally {
      await store.close();
    }
  } finally {
    await recorder.close();
    entries.close();
  }
}

const cannotBeDoneAgain = (troubles: readonly string[]): RepriseError =>
  refused(
    ['the task cannot be replayed with a single worker', ...troubles.map(each => `  ${each}`)].join('\n'),
    captureAnother,
  );

type EffectAnswers = (pending: PendingEffect) => EffectOutcome | undefined;

/**
 * Recorded answers of the project's task command, of the push and of the clock. With the recorded times, commits
 * get their original ids, which occur in conflict markers and in agent replies.
 */
function answersOf(
  { segment, listed, pushed }: WorkerRun,
  setClock: (epochMs: number) => void,
): EffectAnswers {
  const times = new Map<string, number[]>();
  for (const { op, lane, outcome } of segment.entries) {
    if (op !== 'clock.now' || outcome?.kind !== 'ok') continue;
    const place = placeInRun(lane);
    times.set(place, [...(times.get(place) ?? []), Number(outcome.value)]);
  }
  const timeIn = (lane: string): EffectOutcome | undefined => {
    const place = placeInRun(lane);
    const time = times.get(place)?.shift();
    if (time === undefined) return undefined;
    setClock(time);
    return { kind: 'ok', value: time };
  };
  return ({ effect, lane }) => {
    switch (effect.name) {
      case 'clock.now':
        return timeIn(lane.name);
      case 'tasks.list':
        return listed ?? { kind: 'ok', value: '' };
      case 'git.push':
        return pushed ?? { kind: 'ok', value: undefined };
      default:
        return undefined;
    }
  };
}

/** Tells whether an effect was cancelled by a stop request in the recorded run. Only a cancellation may end it again. */
function cancelledIn({ segment }: WorkerRun): (pending: PendingEffect) => boolean {
  const ends = segment.entries.filter(
    ({ op, outcome }) => op.endsWith('.end') && outcome?.kind === 'cancelled',
  );
  return endsAt(ends);
}

/** Tells whether an effect is the turn of a session that was suspended in the recorded run. Only a suspension may end it. */
function suspendedIn({ segment }: WorkerRun): (pending: PendingEffect) => boolean {
  const turns = segment.entries.filter(
    ({ op, outcome }) => op === 'session.next.end' && isSuspended(outcome),
  );
  return endsAt(turns);
}

const isSuspended = (outcome: EffectOutcome | undefined): boolean =>
  outcome?.kind === 'ok' && /"kind":"cancelled"|"kind":"suspend"/.test(JSON.stringify(outcome.value) ?? '');

function endsAt(entries: WorkerRun['segment']['entries']): (pending: PendingEffect) => boolean {
  const places = new Set(entries.map(({ lane, i }) => `${placeInRun(lane)}:${i}`));
  return ({ lane, i, nextPhase }) => nextPhase === 'end' && places.has(`${placeInRun(lane.name)}:${i}`);
}

/** Path of a lane below the lane of its run, such as `/0/2`; `elsewhere` for a lane of the worker itself. */
const placeInRun = (lane: string): string => /worker#\d+\/engine#\d+(.*)$/.exec(lane)?.[1] ?? 'elsewhere';

/** Wraps a scheduler so that it gives the recorded answers of the run. */
const guided =
  (run: WorkerRun, other: SchedulerFactory, setClock: (epochMs: number) => void): SchedulerFactory =>
  view => {
    const performance = other(view);
    const answers = answersOf(run, setClock);
    const neverEnds = cancelledIn(run);
    const endsSuspended = suspendedIn(run);
    let isSuspending = false;
    return {
      next: () => performance.next(),
      performs: pending => performance.performs(pending),
      canEnd: pending =>
        !neverEnds(pending) && (isSuspending || !endsSuspended(pending)) && performance.canEnd(pending),
      answerOf: (pending, place) =>
        (pending.isCancelling ? undefined : answers(pending)) ?? performance.answerOf(pending, place),
      judge: (pending, place, outcome) => {
        if (pending.effect.name === 'session.suspend') isSuspending = true;
        return performance.judge(pending, place, outcome);
      },
      laneEnded: (lane, count) => performance.laneEnded(lane, count),
      finished: witness => performance.finished(witness),
    };
  };

/** Keeps the original run id: folders are named after it, and agents mention folders. */
function idsOf({ runId, incarnations }: WorkerRun): Ids {
  const counted = countedIds();
  const left = [...incarnations];
  return { ...counted, runId: () => runId, incarnation: () => left.shift() ?? counted.incarnation() };
}
