import { join } from 'node:path';
import { lazySessions } from '../../agents/index.ts';
import { RepriseError } from '../../core/index.ts';
import { createConductedWorld } from '../../effects/conductor/index.ts';
import { allTracers, systemIds } from '../../effects/index.ts';
import { createRedactor } from '../../effects/redact/index.ts';
import { replayScheduler } from '../../effects/schedulers/index.ts';
import { openRepository } from '../../git/index.ts';
import { runShellStep } from '../../process/index.ts';
import type { Host } from '../../project/index.ts';
import { memoryStore } from '../../store/index.ts';
import { settled, stagePaths, type TestContext } from '../context.ts';
import type { FoundCase } from '../manifest/find.ts';
import type { CaseManifest, CaseStep } from '../manifest/manifest.ts';
import { replayClock } from '../perform/clock.ts';
import { failureOfError, isGitReal, stepFailures } from '../perform/failures.ts';
import { CasePerformance, type PlayedStep } from '../perform/perform.ts';
import { fixedEnvironment, mainOf, onStage, putClaims, type Stage, stageOf } from '../perform/stage.ts';
import type { CaseFailure } from '../result.ts';
import { composeCase, orStopped } from '../snapshot/snapshot.ts';
import { Shelf } from './library.ts';
import { loadRecording } from './load.ts';
import { createVcr, leftOn, type OpenSessions, openSessions, type Vcr } from './serve.ts';

/** Outcome of a replay. */
export interface ReplayOutcome {
  readonly failures: readonly CaseFailure[];
  readonly played: readonly PlayedStep[];
  /** Snapshot, absent if the replay did not complete. */
  readonly snapshot?: string | undefined;
}

const defaultTimeoutMs = 120_000;

/** Replays a case from its tapes, in the recorded order. Returns all expected errors as failures. */
export async function replayCase(
  found: FoundCase,
  manifest: CaseManifest,
  context: TestContext,
): Promise<ReplayOutcome> {
  let stage: Stage | undefined;
  try {
    const loaded = loadRecording(found, manifest, context.cwd);
    stage = await stageOf(found, manifest, context);
    return await replayOn(stage, { found, manifest, context, loaded });
  } catch (error) {
    return { failures: [failureOfError(error, found.displayFile)], played: [] };
  } finally {
    stage?.remove();
  }
}

interface Replay {
  readonly found: FoundCase;
  readonly manifest: CaseManifest;
  readonly context: TestContext;
  readonly loaded: ReturnType<typeof loadRecording>;
}

async function replayOn(stage: Stage, { found, manifest, context, loaded }: Replay): Promise<ReplayOutcome> {
  const { recording, sessions, blob } = loaded;
  const env = { ...fixedEnvironment, PATH: context.env['PATH'], HOME: stage.home };
  const redactor = createRedactor({ paths: stagePaths(stage), secrets: [] });
  const clock = replayClock(firstMoment(recording.entries));
  const performance = new CasePerformance({
    manifest,
    stage,
    program: context.program,
    env,
    clock,
    defaultTimeoutMs,
  });
  const world = createConductedWorld({
    scheduler: replayScheduler({
      recording,
      fidelity: manifest.fidelity,
      normalise: value => redactor.json(value),
      expand: value => redactor.expand(value),
      where: recording.placeOf,
      rerecord: `reprise test ${found.name} --record`,
      sourceRoot: context.packages.reprise,
    }),
    tracer: allTracers([clock.tracer, performance.tracer]),
  });
  const repository = await openRepository({ cwd: stage.repo, env, runProgram: stage.runProgram });
  const applyDeltas = isGitReal(manifest);
  const shared = new Shelf(sharedSessions(manifest, sessions));
  const vcrs = new Map<string, Vcr>(
    manifest.steps.map(({ name }) => [
      name,
      createVcr({
        sessions: sessionsOf(name, sessions),
        shared,
        task: unit => taskOf(name, unit),
        redactor,
        blobs: blob,
        repository: async () => repository,
        applyDeltas,
        live: manifest.live,
        openSession: lazySessions,
        runShell: runShellStep,
        rerecord: `reprise test ${found.name} --record`,
      }),
    ]),
  );
  const store = isGitReal(manifest) ? undefined : memoryStore();
  if (store) await putClaims(store, manifest.claims);
  const open = new Map<string, OpenSessions>();
  const hostOf = ({ name }: CaseStep): Host => {
    const vcr = vcrs.get(name);
    if (!vcr) throw new RepriseError('INTERNAL', `no sessions for command ${name}`);
    const opened = openSessions(vcr.openSession);
    open.set(name, opened);
    return {
      world,
      clock,
      ids: systemIds,
      openSession: settled(opened.openSession, manifest),
      runShell: vcr.runShell,
      surround: onStage(stage),
      ...(store ? { openStore: async () => ({ ...store, close: async () => {} }) } : {}),
    };
  };
  const onLeft = async (step: string) => open.get(step)?.closeAll();
  const played = await orStopped(performance.play({ world, hostOf, onLeft }), world);
  await world.finish();
  const failures = [
    ...(await stepFailures(played, {
      stage,
      manifest,
      watch: performance.watch,
      isReal: isGitReal(manifest),
    })),
    ...[...vcrs.values()].flatMap(vcr => vcrFailures(vcr, found)),
    ...leftOverFailures(leftOn(shared, { ...manifest, applyDeltas }), found.name),
    ...(isGitReal(manifest) ? await mainFailures(stage, loaded, found) : []),
  ];
  const snapshot = await composeCase(stage, { manifest, played, entries: recording.entries });
  return { failures, played, snapshot };
}

/** Returns the name of a task, prefixed with the command, so that commands never share a session. */
export const taskOf = (step: string, unit: { readonly step: string; readonly worker?: number | undefined }) =>
  `${step}.${unit.step}${unit.worker === undefined ? '' : `:${unit.worker}`}`;

/** Returns the sessions of one command. */
export const sessionsOf = <T extends { readonly task: string }>(step: string, sessions: readonly T[]) =>
  sessions.filter(({ task }) => task.startsWith(`${step}.`));

/** Returns the sessions of tasks that belong to no command. In another order, another command may take them. */
export const sharedSessions = <T extends { readonly task: string }>(
  { steps }: CaseManifest,
  sessions: readonly T[],
) => sessions.filter(({ task }) => !steps.some(({ name }) => task.startsWith(`${name}.`)));

/** Returns the time at which the recording started. */
export function firstMoment(entries: Replay['loaded']['recording']['entries']): number {
  const first = entries.find(({ op }) => op === 'clock.now');
  return first?.outcome?.kind === 'ok' ? Number(first.outcome.value) : 0;
}

function vcrFailures(vcr: Vcr, { name, displayFile }: FoundCase): readonly CaseFailure[] {
  return [
    ...vcr.problems().map(error => failureOfError(error, displayFile)),
    ...vcr.stale().map(
      ({ file, role, task, what, diff, command }): CaseFailure => ({
        kind: 'stale',
        message: `${what} of ${role} for ${task} has changed since it was recorded`,
        diff,
        hint: `record it again: ${command}`,
        file,
      }),
    ),
    ...vcr
      .applied()
      .filter(({ kind }) => kind !== 'exact')
      .map(
        ({ file, kind, why }): CaseFailure => ({
          kind: 'diverged',
          message: `the recorded changes of a session no longer apply to its workspace (${kind}${why ? `: ${why}` : ''})`,
          hint: `record the case again: reprise test ${name} --record`,
          file,
        }),
      ),
    ...leftOverFailures(vcr.leftOver(), name),
  ];
}

async function mainFailures(
  stage: Stage,
  { recording }: Replay['loaded'],
  { displayFile, name }: FoundCase,
): Promise<readonly CaseFailure[]> {
  const { main } = recording.score;
  if (main === null) return [];
  const now = await mainOf(stage, main.ref.replace('refs/heads/', ''));
  if (now?.commit === main.commit) return [];
  return [
    {
      kind: 'diverged',
      message: `${main.ref} ended at ${main.commit} in the recording, but at ${now?.commit ?? 'no commit'} now`,
      hint: `if that is intended, record the case again: reprise test ${name} --record`,
      file: displayFile,
    },
  ];
}

export const snapshotFile = ({ folder, name }: FoundCase): string => join(folder, `${name}.snap`);

const leftOverFailures = (files: readonly string[], name: string): readonly CaseFailure[] =>
  files.map(file => ({
    kind: 'left-over',
    message: `${file} was recorded but never requested`,
    hint: `record the case again: reprise test ${name} --record`,
    file,
  }));
