import { cpSync, mkdirSync, readdirSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { lazySessions } from '../../agents/index.ts';
import {
  allTracers,
  createLiveWorld,
  fileLimits,
  readRecordedFile,
  systemClock,
  systemIds,
} from '../../effects/index.ts';
import { openJournal, readJournal } from '../../effects/recording/index.ts';
import { createRedactor, secretsOf } from '../../effects/redact/index.ts';
import { createSessionRecorder, SeriesNumbers, type SessionRecorder } from '../../engine/recording/index.ts';
import { watchEscapes } from '../../engine/step/agent/index.ts';
import { openRepository } from '../../git/index.ts';
import { runShellStep, temporaryFolder } from '../../process/index.ts';
import type { Host } from '../../project/index.ts';
import { madeNow, settled, stagePaths, type TestContext } from '../context.ts';
import type { FoundCase } from '../manifest/find.ts';
import type { CaseManifest } from '../manifest/manifest.ts';
import { recordingClock } from '../perform/clock.ts';
import { failureOfError, stepFailures } from '../perform/failures.ts';
import { CasePerformance } from '../perform/perform.ts';
import { fixedEnvironment, mainOf, type Stage, stageOf } from '../perform/stage.ts';
import { type ReplayOutcome, replayCase, taskOf } from '../replay/replay.ts';
import type { CaseFailure } from '../result.ts';
import { sha256 } from './case-files.ts';
import { distil, readActivities } from './distil.ts';
import { leakError, scanForLeaks } from './leak-scan.ts';

/** Timeout of a command without a `timeout`. Real agents take a long time. */
export const defaultTimeoutMs = 30 * 60_000;

/** Variables of the user's environment that would change the recording. */
const ignoredVariables = new Set([
  'REPRISE_STATE_DIR',
  'REPRISE_MAX_CONCURRENT_WORKERS',
  'CI',
  'FORCE_COLOR',
]);

/**
 * Performs a case for real, records it, and replays it. Returns the outcome of that replay. Replaces an existing
 * recording only if all expectations hold, no secret leaked, and the new recording replays.
 */
export async function recordCase(
  found: FoundCase,
  manifest: CaseManifest,
  context: TestContext,
  replay: typeof replayCase = replayCase,
): Promise<ReplayOutcome> {
  let stage: Stage | undefined;
  const folder = temporaryFolder('recording');
  try {
    stage = await stageOf(found, manifest, context);
    return await recordOn(stage, { found, manifest, context, folder, replay });
  } catch (error) {
    return { failures: [failureOfError(error, found.displayFile)], played: [] };
  } finally {
    stage?.remove();
    rmSync(folder, { recursive: true, force: true });
  }
}

interface RecordingContext {
  readonly found: FoundCase;
  readonly manifest: CaseManifest;
  readonly context: TestContext;
  readonly folder: string;
  readonly replay: typeof replayCase;
}

async function recordOn(
  stage: Stage,
  { found, manifest, context, folder, replay }: RecordingContext,
): Promise<ReplayOutcome> {
  const journalFolder = join(folder, 'journal');
  const env = environmentOf(context);
  const problems: string[] = [];
  const note = (message: string) => void problems.push(message);
  const ownHome = context.env['HOME'];
  const redactor = createRedactor({
    paths: [...stagePaths(stage), ...(ownHome ? [{ name: 'user', path: ownHome }] : [])],
    secrets: secretsOf({ ...env, ...manifest.env }),
  });
  const file = join(journalFolder, 'entries.jsonl');
  const journal = openJournal({ file, redactor, header: {}, onNotice: note });
  const clock = recordingClock(systemClock);
  const performance = new CasePerformance({
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
        openSession: settled(watchEscapes(lazySessions), manifest),
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
      performance.tracer,
    ]),
  });
  const played = await performance.play({
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
    ...(await stepFailures(played, { stage, manifest, watch: performance.watch, isReal: true })).map(
      asRefusal,
    ),
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
    secrets: redactor.secrets,
    objects: [join(stage.repo, '.git', 'objects')],
  });
  if (leaks.length > 0) throw leakError(leaks);
  const replayed = await replay({ ...found, folder: target }, manifest, context);
  const outcome = replaceIfReplays(found, manifest, { target, replayed });
  return outcome.failures.length === 0 ? { ...outcome, played } : outcome;
}

/** Replaces the recording of a case if the new one in `target` replays. Returns the outcome of the replay. */
export function replaceIfReplays(
  found: FoundCase,
  manifest: CaseManifest,
  { target, replayed }: { readonly target: string; readonly replayed: ReplayOutcome },
): ReplayOutcome {
  const { failures } = replayed;
  if (failures.length === 0) replaceRecording(found, target);
  const hint = `the new recording does not replay, so it was not kept; ${likelyCause(manifest)}`;
  return { ...replayed, failures: failures.map(failure => ({ ...failure, hint })) };
}

const likelyCause = ({ steps }: CaseManifest): string => {
  const script = steps.find(({ script, concurrentGroup }) => script !== undefined && concurrentGroup);
  return script
    ? `the shell command ${script.name} runs at any moment of its group: move it out of the group`
    : 'the case may depend on something outside of it';
};

/** Copies the pack of `[base]`, which recording never changes, and returns its hash. */
function copyBasePack(
  { folder }: FoundCase,
  { base }: CaseManifest,
  target: string,
): Readonly<Record<string, string>> {
  if (!base || !/^blobs\//.test(base.pack)) return {};
  cpSync(join(folder, base.pack), join(target, base.pack));
  return {
    [base.pack]: sha256(readRecordedFile({ file: join(folder, base.pack), maxBytes: fileLimits.blob })),
  };
}

/** Explains how to record an intended failure. Recording it silently would make an unintended one pass from then on. */
const asRefusal = (failure: CaseFailure): CaseFailure => {
  const [, code] = /expected exit code \d+, got (\d+)/.exec(failure.message) ?? [];
  if (failure.kind !== 'expectation' || code === undefined) return failure;
  return {
    ...failure,
    hint: `nothing was recorded; if this exit code is intended, add to the case file: expect = { exit = ${code} }`,
  };
};

export const environmentOf = ({ env }: TestContext): Readonly<Record<string, string | undefined>> => ({
  ...Object.fromEntries(
    Object.entries(env).filter(([name]) => !ignoredVariables.has(name) && !/^GIT_/.test(name)),
  ),
  ...fixedEnvironment,
});

/** Replaces the recorded files of a case. Keeps the case file, the snapshot and the races. */
function replaceRecording({ folder }: Pick<FoundCase, 'folder'>, from: string): void {
  for (const file of readdirSync(folder)) {
    const isRecorded = /\.(vcr|score)$/.test(file) || file === 'sessions' || file === 'blobs';
    if (isRecorded) rmSync(join(folder, file), { recursive: true });
  }
  cpSync(from, folder, { recursive: true });
}
