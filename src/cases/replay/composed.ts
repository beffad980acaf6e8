import { existsSync } from 'node:fs';
import { join, relative } from 'node:path';
import {
  type Session,
  type SessionFactory,
  type SessionHost,
  type SessionRequest,
  scriptedSessions,
} from '../../agents/index.ts';
import { RepriseError } from '../../core/index.ts';
import { createConductedWorld } from '../../effects/conductor/index.ts';
import {
  allTracers,
  createRecorder,
  fileLimits,
  readRecordedFile,
  readRecordedText,
} from '../../effects/index.ts';
import { createRedactor, type Redactor } from '../../effects/redact/index.ts';
import { roundRobinScheduler } from '../../effects/schedulers/index.ts';
import { parseSessionFile, type SessionFile } from '../../engine/recording/index.ts';
import { openRepository } from '../../git/index.ts';
import { runShellStep } from '../../process/index.ts';
import type { Host } from '../../project/index.ts';
import { settled, stagePaths, type TestContext } from '../context.ts';
import type { FoundCase } from '../manifest/find.ts';
import type { CaseManifest } from '../manifest/manifest.ts';
import { countedIds, virtualClock } from '../perform/clock.ts';
import { failureOfError, stepFailures } from '../perform/failures.ts';
import { CasePerformance } from '../perform/perform.ts';
import { fixedEnvironment, onStage, type Stage, stageOf } from '../perform/stage.ts';
import type { CaseFailure } from '../result.ts';
import { composeCase, orStopped } from '../snapshot/snapshot.ts';
import type { ReplayOutcome } from './replay.ts';
import { sessionThatFails } from './serve.ts';
import { type AppliedMark, type DeltaOptions, Deltas, VcrSession } from './serve-session.ts';

const defaultTimeoutMs = 120_000;

/**
 * Performs a `[worker_test]` case, whose sessions are listed in the case file. Git, locks, scripts and landings are real,
 * the clock and ids are deterministic, and lanes take turns.
 */
export async function playComposed(
  found: FoundCase,
  manifest: CaseManifest,
  context: TestContext,
): Promise<ReplayOutcome> {
  let stage: Stage | undefined;
  try {
    stage = await stageOf(found, manifest, context);
    return await playOn(stage, { found, manifest, context });
  } catch (error) {
    return { failures: [failureOfError(error, found.displayFile)], played: [] };
  } finally {
    stage?.remove();
  }
}

interface ComposedContext {
  readonly found: FoundCase;
  readonly manifest: CaseManifest;
  readonly context: TestContext;
}

async function playOn(stage: Stage, { found, manifest, context }: ComposedContext): Promise<ReplayOutcome> {
  const env = { ...fixedEnvironment, PATH: context.env['PATH'], HOME: stage.home };
  const clock = virtualClock();
  const ids = countedIds();
  const repository = await openRepository({ cwd: stage.repo, env, runProgram: stage.runProgram });
  const sessions = createVcrSessionFactory({
    workers: manifest.steps.map(({ name, sessions: served = [] }) => ({ name, sessions: served })),
    load: vcr => loadSession(vcr, found, context),
    redactor: createRedactor({ paths: stagePaths(stage), secrets: [] }),
    repository: async () => repository,
    blobs: blobsOf(found),
    applyDeltas: true,
  });
  const performance = new CasePerformance({
    manifest,
    stage,
    program: context.program,
    env,
    clock,
    defaultTimeoutMs,
  });
  const recorder = createRecorder();
  const world = createConductedWorld({
    scheduler: roundRobinScheduler(clock),
    tracer: allTracers([recorder.tracer, performance.tracer]),
  });
  const hostOf = ({ name }: { readonly name: string }): Host => ({
    world,
    clock,
    ids,
    openSession: settled(sessions.of(name), manifest),
    runShell: runShellStep,
    surround: onStage(stage),
  });
  const played = await orStopped(performance.play({ world, hostOf, onLeft: async () => {} }), world);
  await world.finish();
  const failures: readonly CaseFailure[] = [
    ...sessions.problems().map(error => failureOfError(error, found.displayFile)),
    ...sessions.leftOver().map(
      (what): CaseFailure => ({
        kind: 'left-over',
        message: `a session was never requested: ${what}`,
        hint: `remove it from the case, or find out why the worker stopped earlier, then: reprise test ${found.name}`,
        file: found.displayFile,
      }),
    ),
    ...(await stepFailures(played, { stage, manifest, watch: performance.watch, isReal: true })),
  ];
  const { entries } = recorder.recording();
  return { failures, played, snapshot: await composeCase(stage, { manifest, played, entries }) };
}

const blobsOf =
  ({ folder }: FoundCase) =>
  (sha: string): Uint8Array =>
    readRecordedFile({ file: join(folder, 'blobs', sha), maxBytes: fileLimits.blob });

/** Loads a session from the case, the folder beside it, or the sessions shared with sibling cases. */
function loadSession(vcr: string, found: FoundCase, { cwd }: TestContext): SessionFile {
  const { folder, displayFile } = found;
  const places = [join(folder, 'sessions'), folder, join(folder, '..', 'sessions'), join(folder, '..')];
  const file = places
    .flatMap(place => [join(place, `${vcr}.jsonl`), join(place, `${vcr}.vcr`), join(place, vcr)])
    .find(path => existsSync(path));
  if (file !== undefined) {
    const shown = relative(cwd, file);
    return parseSessionFile(shown, readRecordedText({ file, displayFile: shown }), blobsOf(found));
  }
  throw new RepriseError('NOT_RECORDED', `${displayFile} names the session ${vcr}, which does not exist`, {
    hint: `write it by hand, or copy a recorded one: ${relative(cwd, join(folder, 'sessions', `${vcr}.jsonl`))}`,
  });
}

interface ServedWorker {
  readonly name: string;
  /** Sessions in the order in which the worker opens them. */
  readonly sessions: readonly { readonly role: string; readonly vcr: string }[];
}

interface VcrSessionFactoryOptions extends DeltaOptions {
  readonly workers: readonly ServedWorker[];
  /** Loads the session file of that name. */
  readonly load: (vcr: string) => SessionFile;
  readonly redactor: Redactor;
}

/** Serves the sessions of a `[worker_test]` case to its workers. */
interface VcrSessionFactory {
  /** Returns a factory that serves the sessions of one worker in order. */
  of(worker: string): SessionFactory;
  /** Returns the sessions that no worker opened. */
  leftOver(): readonly string[];
  applied(): readonly AppliedMark[];
  problems(): readonly RepriseError[];
}

/** Loads all session files up front. Throws what `load` throws. */
export function createVcrSessionFactory(options: VcrSessionFactoryOptions): VcrSessionFactory {
  const deltas = new Deltas(options);
  const problems: RepriseError[] = [];
  const onProblem = (error: RepriseError): RepriseError => {
    problems.push(error);
    return error;
  };
  const queues = new Map(options.workers.map(worker => [worker.name, queueOf(worker, options)]));

  const serve = (file: SessionFile, request: SessionRequest, host: SessionHost): Session => {
    switch (file.kind) {
      case 'written':
        return scriptedSessions(asScripted(request, file.script), host);
      case 'session': {
        const recording = options.redactor.expand(file) as typeof file;
        const applyDelta = () => deltas.apply(file, request.cwd);
        return new VcrSession({ recording, host, applyDelta, onProblem });
      }
      case 'shell':
        return sessionThatFails(onProblem(notASession(file.file)));
    }
  };

  return {
    of: worker => (request, host) => {
      const role = request.agent.name;
      const queue = queues.get(worker);
      const next = queue?.[0];
      if (!queue || !next) return sessionThatFails(onProblem(noneLeft(worker, role, queue !== undefined)));
      if (next.role !== role && next.role !== anyAgent)
        return sessionThatFails(onProblem(otherRole({ worker, role, next })));
      queue.shift();
      return serve(next.file, request, host);
    },
    leftOver: () =>
      [...queues].flatMap(([worker, queue]) => queue.map(({ role, vcr }) => `${worker}: ${role} (${vcr})`)),
    applied: () => [...deltas.marks],
    problems: () => [...problems],
  };
}

/** Role that matches any agent. */
const anyAgent = 'agent';

interface QueuedSession {
  readonly role: string;
  readonly vcr: string;
  readonly file: SessionFile;
}

const queueOf = ({ sessions }: ServedWorker, { load }: VcrSessionFactoryOptions): QueuedSession[] =>
  sessions.map(({ role, vcr }) => ({ role, vcr, file: load(vcr) }));

const asScripted = (
  request: SessionRequest,
  script: Extract<SessionFile, { kind: 'written' }>['script'],
): SessionRequest => ({ ...request, agent: { ...request.agent, kind: 'scripted', script } });

const noneLeft = (worker: string, role: string, isKnown: boolean): RepriseError =>
  new RepriseError(
    'REPLAY_DIVERGED',
    isKnown
      ? `${worker} opens another session of agent ${role}, but none is left`
      : `${worker} opens a session of agent ${role}, but has no sessions`,
    { hint: `add { role = "${role}", vcr = "..." } to the sessions of ${worker}` },
  );

const otherRole = ({
  worker,
  role,
  next,
}: {
  worker: string;
  role: string;
  next: QueuedSession;
}): RepriseError =>
  new RepriseError(
    'REPLAY_DIVERGED',
    `${worker} opens a session of agent ${role}, but its next session is ${next.vcr} with role ${next.role}`,
    { hint: `list the sessions of ${worker} in the order in which it opens them, or fix a role` },
  );

const notASession = (file: string): RepriseError =>
  new RepriseError('REPLAY_DIVERGED', `${file} is the recording of a script, not of a session`, {
    hint: 'name the recording of a session instead',
  });
