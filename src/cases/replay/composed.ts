import { existsSync, readFileSync } from 'node:fs';
import { join, relative } from 'node:path';
import { RepriseError } from '../../core/errors.ts';
import { createConductedWorld } from '../../effects/conductor/conductor.ts';
import { createRedactor } from '../../effects/redact/redact.ts';
import { freePlayer } from '../../effects/schedulers/round-robin.ts';
import { allTracers, createRecorder } from '../../effects/tracer.ts';
import { parseSessionFile } from '../../engine/recording/decode.ts';
import type { SessionFile } from '../../engine/recording/session-file.ts';
import { openRepository } from '../../git/repository.ts';
import { runShellStep } from '../../process/shell-step.ts';
import type { Host } from '../../project/host.ts';
import { composeCase, orStopped } from '../../testing/compose-case.ts';
import { stagePaths } from '../../testing/paths.ts';
import { settled } from '../../testing/session-settings.ts';
import { createVcrSessionFactory } from '../../testing/vcr/vcr-session-factory.ts';
import { countedIds, virtualClock } from '../../testing/virtual-time.ts';
import type { TestContext } from '../context.ts';
import type { FoundCase } from '../manifest/find.ts';
import type { CaseManifest } from '../manifest/manifest.ts';
import { failureOfError, stepFailures } from '../perform/failures.ts';
import { Player } from '../perform/perform.ts';
import { fixedEnvironment, onStage, type Stage, stageOf } from '../perform/stage.ts';
import type { CaseFailure } from '../result.ts';
import type { Replayed } from './replay.ts';

const defaultTimeoutMs = 120_000;

/**
 * Plays a case whose sessions were put together by hand: git, locks, scripts and landing are real, the clock and ids are
 * the same wherever it is played, and lanes take turns.
 */
export async function playComposed(
  found: FoundCase,
  manifest: CaseManifest,
  context: TestContext,
): Promise<Replayed> {
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

interface Composed {
  readonly found: FoundCase;
  readonly manifest: CaseManifest;
  readonly context: TestContext;
}

async function playOn(stage: Stage, { found, manifest, context }: Composed): Promise<Replayed> {
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
  const player = new Player({ manifest, stage, program: context.program, env, clock, defaultTimeoutMs });
  const recorder = createRecorder();
  const world = createConductedWorld({
    player: freePlayer(clock),
    tracer: allTracers([recorder.tracer, player.tracer]),
  });
  const hostOf = ({ name }: { readonly name: string }): Host => ({
    world,
    clock,
    ids,
    openSession: settled(sessions.of(name), manifest),
    runShell: runShellStep,
    surround: onStage(stage),
  });
  const played = await orStopped(player.play({ world, hostOf, onLeft: async () => {} }), world);
  await world.finish();
  const failures: readonly CaseFailure[] = [
    ...sessions.problems().map(error => failureOfError(error, found.displayFile)),
    ...sessions.leftOver().map(
      (what): CaseFailure => ({
        kind: 'left-over',
        message: `a session was never asked for: ${what}`,
        hint: 'remove it from the case, or find out why the worker ended before',
        file: found.displayFile,
      }),
    ),
    ...(await stepFailures(played, { stage, manifest, watch: player.watch, isReal: true })),
  ];
  const { entries } = recorder.recording();
  return { failures, played, snapshot: await composeCase(stage, { manifest, played, entries }) };
}

const blobsOf =
  ({ folder }: FoundCase) =>
  (sha: string): Uint8Array =>
    readFileSync(join(folder, 'blobs', sha));

/** Looked for in the case, beside it, and among the sessions of its neighbours. */
function loadSession(vcr: string, found: FoundCase, { cwd }: TestContext): SessionFile {
  const { folder, displayFile } = found;
  const places = [join(folder, 'sessions'), folder, join(folder, '..', 'sessions'), join(folder, '..')];
  const file = places
    .flatMap(place => [join(place, `${vcr}.jsonl`), join(place, `${vcr}.vcr`), join(place, vcr)])
    .find(path => existsSync(path));
  if (file !== undefined)
    return parseSessionFile(relative(cwd, file), readFileSync(file, 'utf8'), blobsOf(found));
  throw new RepriseError(
    'NOT_RECORDED',
    `${displayFile} names the session ${vcr}, and there is no such file`,
    {
      hint: `write it by hand, or copy a recorded one: ${relative(cwd, join(folder, 'sessions', `${vcr}.jsonl`))}`,
    },
  );
}
