import { cpSync, mkdirSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { lazySessions, type SessionFactory } from '../../agents/index.ts';
import { nearest } from '../../core/index.ts';
import { createConductedWorld } from '../../effects/conductor/index.ts';
import {
  allTracers,
  fileLimits,
  readRecordedFile,
  readRecordedText,
  systemIds,
} from '../../effects/index.ts';
import {
  openJournal,
  parseScore,
  readJournal,
  scoreFileName,
  tapeFileName,
  writeScore,
} from '../../effects/recording/index.ts';
import { createRedactor, type Redactor, secretsOf } from '../../effects/redact/index.ts';
import { rerecordScheduler } from '../../effects/schedulers/index.ts';
import {
  createSessionRecorder,
  type SessionRecorder,
  sessionFileName,
} from '../../engine/recording/index.ts';
import { watchEscapes } from '../../engine/step/agent/index.ts';
import { openRepository, type Repository } from '../../git/index.ts';
import { runShellStep, temporaryFolder } from '../../process/index.ts';
import type { Host } from '../../project/index.ts';
import { madeNow, settled, stagePaths, type TestContext } from '../context.ts';
import type { FoundCase } from '../manifest/find.ts';
import type { CaseManifest, CaseStep } from '../manifest/manifest.ts';
import { advancingClock } from '../perform/clock.ts';
import { failureOfError, stepFailures } from '../perform/failures.ts';
import { CasePerformance, type PlayedStep } from '../perform/perform.ts';
import { mainOf, type Stage, stageOf } from '../perform/stage.ts';
import { Shelf } from '../replay/library.ts';
import { type LoadedRecording, loadRecording, recordedFiles } from '../replay/load.ts';
import {
  firstMoment,
  type ReplayOutcome,
  replayCase,
  sessionsOf,
  sharedSessions,
  taskOf,
} from '../replay/replay.ts';
import { createVcr, type OpenSessions, openSessions } from '../replay/serve.ts';
import type { CaseFailure } from '../result.ts';
import { orStopped } from '../snapshot/snapshot.ts';
import { sha256 } from './case-files.ts';
import { distil, readActivities } from './distil.ts';
import { leakError, scanForLeaks } from './leak-scan.ts';
import { defaultTimeoutMs, environmentOf, replaceIfReplays } from './record.ts';

/**
 * Records one command of a case again: it runs for real, while all others follow their recording. Then replays the whole
 * case and returns the outcome of that replay. Replaces the files of the command and the score only if all expectations
 * hold, no secret leaked, and the new recording replays.
 */
export async function recordStep(recording: StepRecording): Promise<ReplayOutcome> {
  const { found, manifest, context } = recording;
  const problem = problemOf(recording);
  if (problem) return { failures: [problem], played: [] };
  let stage: Stage | undefined;
  let folder: string | undefined;
  try {
    const loaded = loadRecording(found, manifest, context.cwd);
    folder = temporaryFolder('recording');
    stage = await stageOf(found, manifest, context);
    const journal = join(folder, 'journal');
    const played = await performOneLive(stage, { ...recording, loaded, journal });
    if (played.failures.length > 0) return played;
    const target = join(folder, 'case');
    mkdirSync(target);
    await composeRecording({ ...recording, ...played, stage, loaded, journal, target });
    const leaks = await scanForLeaks({
      folder: target,
      secrets: played.redactor.secrets,
      objects: [join(stage.repo, '.git', 'objects')],
    });
    if (leaks.length > 0) throw leakError(leaks);
    const replayed = await replayCase({ ...found, folder: target }, manifest, context);
    return replaceIfReplays(found, manifest, { target, replayed });
  } catch (error) {
    return { failures: [failureOfError(error, found.displayFile)], played: [] };
  } finally {
    stage?.remove();
    if (folder !== undefined) rmSync(folder, { recursive: true, force: true });
  }
}

/** Returns the reason why the command cannot be recorded alone, as far as the case file shows. */
function problemOf({ found, manifest, step }: Omit<StepRecording, 'context'>): CaseFailure | undefined {
  const { displayFile: file, name } = found;
  const refused = (message: string, hint: string): CaseFailure => ({
    kind: 'definition',
    message,
    hint,
    file,
  });
  if (manifest.form === 'worker_test') {
    const message = `${file} is a [worker_test] case, which has no recording`;
    return refused(message, 'edit the session files that it names instead');
  }
  const recorded = manifest.steps.filter(({ script }) => script === undefined).map(each => each.name);
  const command = `reprise test ${name} --record --step`;
  const choice = `commands that can be recorded: ${recorded.join(', ')}\n${command} ${recorded[0] ?? '<command>'}`;
  const chosen = manifest.steps.find(each => each.name === step);
  if (!chosen) {
    const guess = nearest(step, recorded);
    const hint = guess === undefined ? choice : `did you mean: ${command} ${guess}`;
    return refused(`${file} has no command named ${step}`, hint);
  }
  if (chosen.script === undefined) return undefined;
  return refused(`command ${step} of ${file} is a shell script, which is never recorded`, choice);
}

interface StepRecording {
  readonly found: FoundCase;
  readonly manifest: CaseManifest;
  /** Name of the command to record. */
  readonly step: string;
  readonly context: TestContext;
}

interface LiveStepContext extends StepRecording {
  readonly loaded: LoadedRecording;
  /** Folder of the journal. */
  readonly journal: string;
}

interface LivePerformance {
  readonly failures: readonly CaseFailure[];
  readonly played: readonly PlayedStep[];
  readonly redactor: Redactor;
  readonly repository: Repository;
}

/** Performs a case with one command for real. Throws REPLAY_DIVERGED if another command does not follow its recording. */
async function performOneLive(stage: Stage, options: LiveStepContext): Promise<LivePerformance> {
  const { found, manifest, step, context, loaded, journal: folder } = options;
  const env = environmentOf(context);
  const ownHome = context.env['HOME'];
  const redactor = createRedactor({
    paths: [...stagePaths(stage), ...(ownHome ? [{ name: 'user', path: ownHome }] : [])],
    secrets: secretsOf({ ...env, ...manifest.env }),
  });
  const problems: string[] = [];
  const note = (message: string) => void problems.push(message);
  const repository = await openRepository({ cwd: stage.repo, inheritEnv: env });
  const clock = advancingClock(firstMoment(loaded.recording.entries));
  const journal = openJournal({ file: join(folder, 'entries.jsonl'), redactor, header: {}, onNotice: note });
  const performance = new CasePerformance({
    manifest,
    stage,
    program: context.program,
    env,
    clock,
    defaultTimeoutMs,
  });
  const recorder = createSessionRecorder({
    folder,
    redactor,
    repository: async () => repository,
    projectRoot: stage.repo,
    task: unit => taskOf(step, unit),
    snapshotProject: true,
    openSession: settled(watchEscapes(lazySessions), manifest),
    runShell: runShellStep,
    onProblem: note,
  });
  const world = createConductedWorld({
    scheduler: rerecordScheduler({
      recording: loaded.recording,
      live: step,
      time: clock,
      normalise: value => redactor.json(value),
      expand: value => redactor.expand(value),
      where: loaded.recording.placeOf,
      rerecord: `reprise test ${found.name} --record`,
    }),
    tracer: allTracers([journal.tracer, recorder.tracer, performance.tracer]),
  });
  const ports = portsOfSteps({ ...options, redactor, repository, recorder });
  const hostOf = ({ name }: CaseStep): Host => ({ world, clock, ids: systemIds, ...ports.of(name) });
  try {
    const played = await orStopped(performance.play({ world, hostOf, onLeft: ports.close }), world);
    await world.finish();
    const failures = [
      ...problems.map((message): CaseFailure => ({ kind: 'error', message, file: found.displayFile })),
      ...(await stepFailures(played, { stage, manifest, watch: performance.watch, isReal: true })),
    ];
    return { failures, played, redactor, repository };
  } catch (error) {
    await world.finish().catch(() => {});
    await ports.close(step);
    throw error;
  } finally {
    await recorder.close();
    journal.close();
  }
}

interface PortsOptions extends LiveStepContext {
  readonly redactor: Redactor;
  readonly repository: Repository;
  readonly recorder: SessionRecorder;
}

/** Provides sessions and scripts: real ones for the command being recorded, recorded ones for all others. */
function portsOfSteps({ found, manifest, step, loaded, redactor, repository, recorder }: PortsOptions) {
  const open = new Map<string, OpenSessions>();
  const shared = new Shelf(sharedSessions(manifest, loaded.sessions));
  const closable = (name: string, openSession: SessionFactory): SessionFactory => {
    const opened = openSessions(openSession);
    open.set(name, opened);
    return opened.openSession;
  };
  return {
    of: (name: string): Pick<Host, 'openSession' | 'runShell'> => {
      if (name === step)
        return { openSession: closable(name, recorder.openSession), runShell: recorder.runShell };
      const vcr = createVcr({
        sessions: sessionsOf(name, loaded.sessions),
        shared,
        task: unit => taskOf(name, unit),
        redactor,
        blobs: loaded.blob,
        repository: async () => repository,
        applyDeltas: true,
        live: manifest.live,
        openSession: lazySessions,
        runShell: runShellStep,
        rerecord: `reprise test ${found.name} --record`,
      });
      return { openSession: settled(closable(name, vcr.openSession), manifest), runShell: vcr.runShell };
    },
    close: async (name: string): Promise<void> => {
      await open.get(name)?.closeAll();
      if (name === step) await recorder.close();
    },
  };
}

interface CompositionContext extends StepRecording {
  readonly stage: Stage;
  readonly loaded: LoadedRecording;
  readonly journal: string;
  readonly redactor: Redactor;
  readonly repository: Repository;
  /** Path of an empty folder for the recording. */
  readonly target: string;
}

/** Writes a complete recording: new files of one command, a new score, and unchanged files of all other commands. */
async function composeRecording(composition: CompositionContext): Promise<void> {
  const { found, manifest, step, context, stage, journal, redactor, repository, target } = composition;
  const steps = manifest.steps.filter(({ script }) => script === undefined).map(({ name }) => name);
  const kept = keptFiles(composition);
  await distil(
    {
      case: found.name,
      recording: await readJournal(join(journal, 'entries.jsonl')),
      activities: readActivities(journal),
      objectsDir: join(journal, 'objects'),
      repository,
      base: stage.base,
      redactor,
      made: await madeNow(stage.git, context),
      main: await mainOf(stage, manifest.base?.branch ?? 'main'),
      steps,
      files: hashesOf(found.folder, kept),
    },
    target,
  );
  const tapes = steps.filter(name => name !== step).map(name => tapeFileName(found.name, name));
  const copied = [...kept, ...tapes, ...(manifest.base ? [manifest.base.pack] : [])];
  for (const file of copied) cpSync(join(found.folder, file), join(target, file));
  rewriteScore(join(target, scoreFileName(found.name)), hashesOf(target, tapes));
}

/** Returns the sessions of the other commands, hand-written sessions, and the blobs that they use. */
function keptFiles({ found: { folder }, manifest, step, loaded }: CompositionContext): readonly string[] {
  const replaced = new Set(
    loaded.sessions
      .filter(({ task }) => task.startsWith(`${step}.`))
      .map(session => `sessions/${sessionFileName(session)}`)
      .flatMap(file => [file, file.replace(/\.jsonl$/, '.patch')]),
  );
  const files = recordedFiles(folder).filter(file => !replaced.has(file));
  const texts = files.filter(isSession).map(file => readRecordedText({ file: join(folder, file) }));
  const isNeeded = (blob: string) =>
    blob === manifest.base?.pack || texts.some(text => text.includes(blob.slice('blobs/'.length)));
  return files.filter(file => !file.startsWith('blobs/') || isNeeded(file));
}

const isSession = (file: string): boolean => file.startsWith('sessions/') && file.endsWith('.jsonl');

const hashesOf = (folder: string, files: readonly string[]): Readonly<Record<string, string>> =>
  Object.fromEntries(
    files.map(file => [
      file,
      sha256(readRecordedFile({ file: join(folder, file), maxBytes: fileLimits.blob })),
    ]),
  );

function rewriteScore(file: string, hashes: Readonly<Record<string, string>>): void {
  const { header, entries } = parseScore({ file, text: readRecordedText({ file }) });
  writeFileSync(file, writeScore({ header: { ...header, files: { ...header.files, ...hashes } }, entries }));
}
