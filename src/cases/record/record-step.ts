import { cpSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { lazySessions } from '../../agents/open-session.ts';
import type { SessionFactory } from '../../agents/session.ts';
import { nearest } from '../../core/suggest.ts';
import { createConductedWorld } from '../../effects/conductor/conductor.ts';
import { openJournal } from '../../effects/recording/journal.ts';
import { readJournal } from '../../effects/recording/journal-reader.ts';
import { parseScore, scoreFileName, writeScore } from '../../effects/recording/score-file.ts';
import { tapeFileName } from '../../effects/recording/tape-file.ts';
import { createRedactor, type Redactor } from '../../effects/redact/redact.ts';
import { type Secret, secretsOf } from '../../effects/redact/secrets.ts';
import { pinnedPlayer } from '../../effects/schedulers/rerecord.ts';
import { systemIds } from '../../effects/system.ts';
import { allTracers } from '../../effects/tracer.ts';
import { createSessionRecorder, type SessionRecorder } from '../../engine/recording/recorder.ts';
import { sessionFileName } from '../../engine/recording/session-file.ts';
import { openRepository, type Repository } from '../../git/repository.ts';
import { runShellStep } from '../../process/shell-step.ts';
import type { Host } from '../../project/host.ts';
import { madeNow, settled, stagePaths, type TestContext } from '../context.ts';
import type { FoundCase } from '../manifest/find.ts';
import type { CaseManifest, CaseStep } from '../manifest/manifest.ts';
import { steppedClock } from '../perform/clock.ts';
import { failureOfError, stepFailures } from '../perform/failures.ts';
import { type PlayedStep, Player } from '../perform/perform.ts';
import { mainOf, type Stage, stageOf } from '../perform/stage.ts';
import { Shelf } from '../replay/library.ts';
import { type LoadedRecording, loadRecording, recordedFiles } from '../replay/load.ts';
import {
  firstMoment,
  type Replayed,
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
import { environmentOf, replaceRecording } from './record.ts';

/**
 * Records one step of a case again: it is played for real, while all others are held to what was recorded of them. What
 * came of it is then replayed as a whole, and that replay is given back. The files of the step, and the score, are
 * replaced only if everything that the case expects holds, and nothing leaked.
 */
export async function recordStep(recording: StepRecording): Promise<Replayed> {
  const { found, manifest, context } = recording;
  const problem = problemOf(recording);
  if (problem) return { failures: [problem], played: [] };
  let stage: Stage | undefined;
  let folder: string | undefined;
  try {
    const loaded = loadRecording(found, manifest, context.cwd);
    // Beside the case, so that what a crash leaves can be found; on the same disk, so that it can be moved.
    folder = mkdtempSync(join(found.folder, '.recording-'));
    stage = await stageOf(found, manifest, context);
    const journal = join(folder, 'journal');
    const played = await playOneLive(stage, { ...recording, loaded, journal });
    if (played.failures.length > 0) return played;
    const target = join(folder, 'case');
    mkdirSync(target);
    await composeRecording({ ...recording, ...played, stage, loaded, journal, target });
    const leaks = await scanForLeaks({
      folder: target,
      secrets: played.secrets,
      objects: [join(stage.repo, '.git', 'objects')],
    });
    if (leaks.length > 0) throw leakError(leaks);
    const replayed = await replayCase({ ...found, folder: target }, manifest, context);
    if (replayed.failures.length === 0) replaceRecording(found, target);
    return replayed;
  } catch (error) {
    return { failures: [failureOfError(error, found.displayFile)], played: [] };
  } finally {
    stage?.remove();
    if (folder !== undefined) rmSync(folder, { recursive: true, force: true });
  }
}

/** Why a step cannot be recorded alone, as far as the case file tells. */
function problemOf({ found, manifest, step }: Omit<StepRecording, 'context'>): CaseFailure | undefined {
  const { displayFile: file, name } = found;
  const refused = (message: string, hint: string): CaseFailure => ({
    kind: 'definition',
    message,
    hint,
    file,
  });
  if (manifest.form === 'worker_test') {
    const message = `${file} is put together by hand, and nothing of it is recorded`;
    return refused(message, 'change the sessions that it names');
  }
  const recorded = manifest.steps.filter(({ script }) => script === undefined).map(each => each.name);
  const command = `reprise test ${name} --record --step`;
  const choice = `steps that can be recorded: ${recorded.join(', ')}\n${command} ${recorded[0] ?? '<step>'}`;
  const chosen = manifest.steps.find(each => each.name === step);
  if (!chosen) {
    const meant = nearest(step, recorded);
    const hint = meant === undefined ? choice : `did you mean: ${command} ${meant}`;
    return refused(`${file} has no step ${step}`, hint);
  }
  if (chosen.script === undefined) return undefined;
  return refused(`step ${step} of ${file} is a script, which runs for real each time`, choice);
}

interface StepRecording {
  readonly found: FoundCase;
  readonly manifest: CaseManifest;
  /** The step that is played for real. */
  readonly step: string;
  readonly context: TestContext;
}

interface OneLive extends StepRecording {
  readonly loaded: LoadedRecording;
  /** The folder to which everything is written down while it happens. */
  readonly journal: string;
}

interface PlayedOneLive {
  readonly failures: readonly CaseFailure[];
  readonly played: readonly PlayedStep[];
  readonly redactor: Redactor;
  readonly secrets: readonly Secret[];
  readonly repository: Repository;
}

/** Generous: agents are at work. */
const defaultTimeoutMs = 30 * 60_000;

/** Plays a case with one of its steps for real. Throws REPLAY_DIVERGED if another does not fit any more. */
async function playOneLive(stage: Stage, options: OneLive): Promise<PlayedOneLive> {
  const { found, manifest, step, context, loaded, journal: folder } = options;
  const env = environmentOf(context);
  const secrets = secretsOf({ ...env, ...manifest.env });
  const ownHome = context.env['HOME'];
  const redactor = createRedactor({
    paths: [...stagePaths(stage), ...(ownHome ? [{ name: 'user', path: ownHome }] : [])],
    secrets,
  });
  const problems: string[] = [];
  const note = (message: string) => void problems.push(message);
  const repository = await openRepository({ cwd: stage.repo, inheritEnv: env });
  const clock = steppedClock(firstMoment(loaded.recording.entries));
  const journal = openJournal({ file: join(folder, 'entries.jsonl'), redactor, header: {}, onNotice: note });
  const player = new Player({ manifest, stage, program: context.program, env, clock, defaultTimeoutMs });
  const recorder = createSessionRecorder({
    folder,
    redactor,
    repository: async () => repository,
    projectRoot: stage.repo,
    task: unit => taskOf(step, unit),
    snapshotProject: true,
    openSession: settled(lazySessions, manifest),
    runShell: runShellStep,
    onProblem: note,
  });
  const world = createConductedWorld({
    player: pinnedPlayer({
      recording: loaded.recording,
      live: step,
      time: clock,
      normalise: value => redactor.json(value),
      expand: value => redactor.expand(value),
      where: loaded.recording.placeOf,
      rerecord: `reprise test ${found.name} --record`,
    }),
    tracer: allTracers([journal.tracer, recorder.tracer, player.tracer]),
  });
  const ports = portsOfSteps({ ...options, redactor, repository, recorder });
  const hostOf = ({ name }: CaseStep): Host => ({ world, clock, ids: systemIds, ...ports.of(name) });
  try {
    const played = await orStopped(player.play({ world, hostOf, onLeft: ports.close }), world);
    await world.finish();
    const failures = [
      ...problems.map((message): CaseFailure => ({ kind: 'error', message, file: found.displayFile })),
      ...(await stepFailures(played, { stage, manifest, watch: player.watch, isReal: true })),
    ];
    return { failures, played, redactor, secrets, repository };
  } catch (error) {
    await world.finish().catch(() => {});
    await ports.close(step);
    throw error;
  } finally {
    await recorder.close();
    journal.close();
  }
}

interface PortsOptions extends OneLive {
  readonly redactor: Redactor;
  readonly repository: Repository;
  readonly recorder: SessionRecorder;
}

/** Where sessions and scripts are started: real ones for the live step, recorded ones for all others. */
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

interface Composition extends StepRecording {
  readonly stage: Stage;
  readonly loaded: LoadedRecording;
  readonly journal: string;
  readonly redactor: Redactor;
  readonly repository: Repository;
  /** An empty folder. */
  readonly target: string;
}

/** Writes a whole recording: new files of one step, a new score, and the files of all others as they are. */
async function composeRecording(composition: Composition): Promise<void> {
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

/** Sessions of the other steps, what was written by hand, and all that these need. */
function keptFiles({ found: { folder }, manifest, step, loaded }: Composition): readonly string[] {
  const replaced = new Set(
    loaded.sessions
      .filter(({ task }) => task.startsWith(`${step}.`))
      .map(session => `sessions/${sessionFileName(session)}`)
      .flatMap(file => [file, file.replace(/\.jsonl$/, '.patch')]),
  );
  const files = recordedFiles(folder).filter(file => !replaced.has(file));
  const texts = files.filter(isSession).map(file => readFileSync(join(folder, file), 'utf8'));
  const isNeeded = (blob: string) =>
    blob === manifest.base?.pack || texts.some(text => text.includes(blob.slice('blobs/'.length)));
  return files.filter(file => !file.startsWith('blobs/') || isNeeded(file));
}

const isSession = (file: string): boolean => file.startsWith('sessions/') && file.endsWith('.jsonl');

const hashesOf = (folder: string, files: readonly string[]): Readonly<Record<string, string>> =>
  Object.fromEntries(files.map(file => [file, sha256(readFileSync(join(folder, file)))]));

function rewriteScore(file: string, hashes: Readonly<Record<string, string>>): void {
  const { header, entries } = parseScore({ file, text: readFileSync(file, 'utf8') });
  writeFileSync(file, writeScore({ header: { ...header, files: { ...header.files, ...hashes } }, entries }));
}
