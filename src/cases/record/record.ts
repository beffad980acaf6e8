import { cpSync, mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { lazySessions } from '../../agents/open-session.ts';
import { createLiveWorld } from '../../effects/live-world.ts';
import { openJournal } from '../../effects/recording/journal.ts';
import { readJournal } from '../../effects/recording/journal-reader.ts';
import { createRedactor } from '../../effects/redact/redact.ts';
import { secretsOf } from '../../effects/redact/secrets.ts';
import { systemClock, systemIds } from '../../effects/system.ts';
import { allTracers } from '../../effects/tracer.ts';
import { SeriesNumbers } from '../../engine/recording/activity.ts';
import { createSessionRecorder, type SessionRecorder } from '../../engine/recording/recorder.ts';
import { openRepository } from '../../git/repository.ts';
import { runShellStep } from '../../process/shell-step.ts';
import type { Host } from '../../project/host.ts';
import { madeNow, settled, stagePaths, type TestContext } from '../context.ts';
import type { FoundCase } from '../manifest/find.ts';
import type { CaseManifest } from '../manifest/manifest.ts';
import { recordingClock } from '../perform/clock.ts';
import { failureOfError, stepFailures } from '../perform/failures.ts';
import { type PlayedStep, Player } from '../perform/perform.ts';
import { fixedEnvironment, mainOf, type Stage, stageOf } from '../perform/stage.ts';
import { taskOf } from '../replay/replay.ts';
import type { CaseFailure } from '../result.ts';
import { sha256 } from './case-files.ts';
import { distil, readActivities } from './distil.ts';
import { leakError, scanForLeaks } from './leak-scan.ts';

export interface Recorded {
  readonly failures: readonly CaseFailure[];
  readonly played: readonly PlayedStep[];
}

const defaultTimeoutMs = 30 * 60_000;

/** Settings of whoever records that would change what is recorded. */
const unwanted = new Set(['REPRISE_STATE_DIR', 'REPRISE_MAX_CONCURRENT_WORKERS', 'CI', 'FORCE_COLOR']);

/**
 * Plays a case for real and keeps what happened as its tapes. The recording that was there is replaced only if
 * everything that the case expects holds, and nothing leaked.
 */
export async function recordCase(
  found: FoundCase,
  manifest: CaseManifest,
  context: TestContext,
): Promise<Recorded> {
  let stage: Stage | undefined;
  // Beside the case, so that what a crash leaves can be found; on the same disk, so that it can be moved.
  const folder = mkdtempSync(join(found.folder, '.recording-'));
  try {
    stage = await stageOf(found, manifest, context);
    return await recordOn(stage, { found, manifest, context, folder });
  } catch (error) {
    return { failures: [failureOfError(error, found.displayFile)], played: [] };
  } finally {
    stage?.remove();
    rmSync(folder, { recursive: true, force: true });
  }
}

interface Taking {
  readonly found: FoundCase;
  readonly manifest: CaseManifest;
  readonly context: TestContext;
  readonly folder: string;
}

async function recordOn(stage: Stage, { found, manifest, context, folder }: Taking): Promise<Recorded> {
  const journalFolder = join(folder, 'journal');
  const env = environmentOf(context);
  const secrets = secretsOf({ ...env, ...manifest.env });
  const problems: string[] = [];
  const note = (message: string) => void problems.push(message);
  const ownHome = context.env['HOME'];
  const redactor = createRedactor({
    paths: [...stagePaths(stage), ...(ownHome ? [{ name: 'user', path: ownHome }] : [])],
    secrets,
  });
  const file = join(journalFolder, 'entries.jsonl');
  const journal = openJournal({ file, redactor, header: {}, onNotice: note });
  const clock = recordingClock(systemClock);
  const player = new Player({
    manifest,
    stage,
    program: context.program,
    env,
    clock,
    defaultTimeoutMs,
    interrupt: context.interrupt,
  });
  const repository = await openRepository({ cwd: stage.repo, inheritEnv: env });
  const numbers = new SeriesNumbers(join(journalFolder, 'sessions'));
  const recorders = new Map<string, SessionRecorder>(
    manifest.steps.map(({ name }) => [
      name,
      createSessionRecorder({
        folder: journalFolder,
        redactor,
        repository: async () => repository,
        projectRoot: stage.repo,
        task: unit => taskOf(name, unit),
        numbers,
        snapshotProject: true,
        openSession: settled(lazySessions, manifest),
        runShell: runShellStep,
        onProblem: note,
      }),
    ]),
  );
  const world = createLiveWorld({
    refuseStrays: false,
    tracer: allTracers([
      journal.tracer,
      ...[...recorders.values()].map(({ tracer }) => tracer),
      player.tracer,
    ]),
  });
  const played = await player.play({
    world,
    hostOf: ({ name }): Host => ({
      world,
      clock,
      ids: systemIds,
      openSession: recorders.get(name)?.openSession ?? lazySessions,
      runShell: recorders.get(name)?.runShell ?? runShellStep,
    }),
    onLeft: async step => recorders.get(step)?.close(),
  });
  for (const recorder of recorders.values()) await recorder.close();
  journal.close();

  const failures = [
    ...problems.map((message): CaseFailure => ({ kind: 'error', message, file: found.displayFile })),
    ...(await stepFailures(played, { stage, manifest, watch: player.watch, isReal: true })).map(asRefusal),
  ];
  if (failures.length > 0) return { failures, played };

  const target = join(folder, 'case');
  mkdirSync(target);
  const basePack = copyBasePack(found, manifest, target);
  await distil(
    {
      case: found.name,
      recording: await readJournal(file),
      activities: readActivities(journalFolder),
      objectsDir: join(journalFolder, 'objects'),
      repository,
      base: stage.base,
      redactor,
      made: await madeNow(stage.git, context),
      main: await mainOf(stage, manifest.base?.branch ?? 'main'),
      steps: manifest.steps.filter(({ script }) => script === undefined).map(({ name }) => name),
      files: basePack,
    },
    target,
  );
  const leaks = await scanForLeaks({
    folder: target,
    secrets,
    objects: [join(stage.repo, '.git', 'objects')],
  });
  if (leaks.length > 0) throw leakError(leaks);
  replaceRecording(found, target);
  return { failures: [], played };
}

/** What a captured case begins from stays, however often it is recorded. */
function copyBasePack(
  { folder }: FoundCase,
  { base }: CaseManifest,
  target: string,
): Readonly<Record<string, string>> {
  if (!base || !/^blobs\//.test(base.pack)) return {};
  cpSync(join(folder, base.pack), join(target, base.pack));
  return { [base.pack]: sha256(readFileSync(join(folder, base.pack))) };
}

/** A recording of a failure that nobody wanted would pass from then on. */
const asRefusal = (failure: CaseFailure): CaseFailure => {
  const [, code] = /expected exit code \d+, got (\d+)/.exec(failure.message) ?? [];
  if (failure.kind !== 'expectation' || code === undefined) return failure;
  return {
    ...failure,
    hint: `nothing was recorded; if the step is to end so, say it: expect = { exit = ${code} }`,
  };
};

export const environmentOf = ({ env }: TestContext): Readonly<Record<string, string | undefined>> => ({
  ...Object.fromEntries(Object.entries(env).filter(([name]) => !unwanted.has(name) && !/^GIT_/.test(name))),
  ...fixedEnvironment,
});

/** Puts the files of a new recording in the place of the old one. What people wrote, and races that were found, stay. */
export function replaceRecording({ folder }: Pick<FoundCase, 'folder'>, from: string): void {
  for (const file of readdirSync(folder)) {
    const isRecorded = /\.(vcr|score)$/.test(file) || file === 'sessions' || file === 'blobs';
    if (isRecorded) rmSync(join(folder, file), { recursive: true });
  }
  cpSync(from, folder, { recursive: true });
}
