import { join } from 'node:path';
import { lazySessions } from '../../agents/open-session.ts';
import { RepriseError } from '../../core/errors.ts';
import type { HistoryEvent } from '../../core/events.ts';
import type { Ids } from '../../core/time.ts';
import { createConductedWorld } from '../../effects/conductor/conductor.ts';
import type { Asked, PlayerFactory } from '../../effects/conductor/scheduler.ts';
import type { Outcome } from '../../effects/effect.ts';
import { openJournal } from '../../effects/recording/journal.ts';
import { createRedactor, type Redactor } from '../../effects/redact/redact.ts';
import { secretsOf } from '../../effects/redact/secrets.ts';
import { freePlayer } from '../../effects/schedulers/round-robin.ts';
import { allTracers } from '../../effects/tracer.ts';
import { createSessionRecorder } from '../../engine/recording/recorder.ts';
import type { Recording as RecordedActivity } from '../../engine/recording/session-file.ts';
import { unitOf } from '../../engine/state/graph.ts';
import { openRepository, type Repository } from '../../git/repository.ts';
import { runShellStep } from '../../process/shell-step.ts';
import type { Host } from '../../project/host.ts';
import { openStore } from '../../project/open-engine.ts';
import { settled, stagePaths, type TestContext } from '../context.ts';
import type { CaseManifest } from '../manifest/manifest.ts';
import { countedIds, virtualClock } from '../perform/clock.ts';
import { Player } from '../perform/perform.ts';
import type { Stage } from '../perform/stage.ts';
import { environmentOf } from '../record/record.ts';
import { firstMoment, taskOf } from '../replay/replay.ts';
import { createVcr } from '../replay/serve.ts';
import { orStopped } from '../snapshot/snapshot.ts';
import { refused } from './legs.ts';
import type { WorkerRun } from './worker.ts';

/** What sessions and scripts did, as it can be served. */
export interface Draft {
  readonly sessions: readonly RecordedActivity[];
  blob(sha: string): Uint8Array;
}

export interface Reenactment {
  readonly manifest: CaseManifest;
  readonly context: TestContext;
  readonly run: WorkerRun;
  readonly draft: Draft;
  /** A folder for what is written down. */
  readonly workplace: string;
}

export interface Reenacted {
  /** The folder of what was written down. */
  readonly journal: string;
  readonly history: readonly HistoryEvent[];
  readonly exit: number;
  readonly redactor: Redactor;
  readonly repository: Repository;
}

const defaultTimeoutMs = 10 * 60_000;

/** Has a task done again by a worker of its own, with what its agents and scripts did. Throws CAPTURE_REFUSED. */
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
  const clock = virtualClock(firstMoment(run.leg.entries));
  const player = new Player({ manifest, stage, program: context.program, env, clock, defaultTimeoutMs });
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
    player: guided(run, freePlayer(clock), time => clock.advanceTo(time)),
    tracer: allTracers([entries.tracer, recorder.tracer, player.tracer]),
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
      player.play({ world, hostOf: () => host, onLeft: async () => {} }),
      world,
    );
    await world.finish();
    const troubles = [
      ...problems,
      ...vcr.problems().map(({ message }) => message),
      ...vcr.leftOver().map(left => `${left} was never asked for`),
      ...(played?.end.kind === 'exited' ? [] : ['the worker did not come to its end']),
    ];
    if (troubles.length > 0 || played?.end.kind !== 'exited') throw cannotBeDoneAgain(troubles);
    const store = await openStore(join(stage.repo, '.reprise', 'state'), { readonly: true });
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
    ['the task cannot be done again by one worker alone', ...troubles.map(each => `  ${each}`)].join('\n'),
    'capture another run of the same kind',
  );

type Answers = (asked: Asked) => Outcome | undefined;

/**
 * What the project's own command and other machines said, which nobody asks again; and what the clock said in the same
 * place, so that commits get the ids that they had: conflicts are laid out with them, and agents name them.
 */
function answersOf({ leg, listed, pushed }: WorkerRun, setClock: (epochMs: number) => void): Answers {
  const times = new Map<string, number[]>();
  for (const { op, lane, outcome } of leg.entries) {
    if (op !== 'clock.now' || outcome?.kind !== 'ok') continue;
    const place = placeInRun(lane);
    times.set(place, [...(times.get(place) ?? []), Number(outcome.value)]);
  }
  const timeIn = (lane: string): Outcome | undefined => {
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

/** What was under way when somebody wanted to stop: nothing but that ends it. */
function cancelledIn({ leg }: WorkerRun): (asked: Asked) => boolean {
  const ends = leg.entries.filter(({ op, outcome }) => op.endsWith('.end') && outcome?.kind === 'cancelled');
  const places = new Set(ends.map(({ lane, i }) => `${placeInRun(lane)}:${i}`));
  return ({ lane, i, nextPhase }) => nextPhase === 'end' && places.has(`${placeInRun(lane.name)}:${i}`);
}

/** `/0/2`: where a lane is below that of its run. A lane of the worker itself has no such place. */
const placeInRun = (lane: string): string => /worker#\d+\/engine#\d+(.*)$/.exec(lane)?.[1] ?? 'elsewhere';

/** Another player, but for what is known of this run. */
const guided =
  (run: WorkerRun, other: PlayerFactory, setClock: (epochMs: number) => void): PlayerFactory =>
  view => {
    const player = other(view);
    const answers = answersOf(run, setClock);
    const neverEnds = cancelledIn(run);
    return {
      next: () => player.next(),
      performs: asked => player.performs(asked),
      canEnd: asked => !neverEnds(asked) && player.canEnd(asked),
      answerOf: (asked, place) =>
        (asked.isDoomed ? undefined : answers(asked)) ?? player.answerOf(asked, place),
      judge: (asked, place, outcome) => player.judge(asked, place, outcome),
      laneEnded: (lane, count) => player.laneEnded(lane, count),
      finished: witness => player.finished(witness),
    };
  };

/** Folders are named after runs, and agents name folders. */
function idsOf({ runId, incarnations }: WorkerRun): Ids {
  const counted = countedIds();
  const left = [...incarnations];
  return { ...counted, runId: () => runId, incarnation: () => left.shift() ?? counted.incarnation() };
}
