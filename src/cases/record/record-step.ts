import { join } from 'node:path';
import { lazySessions } from '../../agents/open-session.ts';
import type { SessionFactory } from '../../agents/session.ts';
import { createConductedWorld } from '../../effects/conductor/conductor.ts';
import { openJournal } from '../../effects/recording/journal.ts';
import { createRedactor, type Redactor } from '../../effects/redact/redact.ts';
import { type Secret, secretsOf } from '../../effects/redact/secrets.ts';
import { pinnedPlayer } from '../../effects/schedulers/rerecord.ts';
import { systemIds } from '../../effects/system.ts';
import { allTracers } from '../../effects/tracer.ts';
import { createSessionRecorder, type SessionRecorder } from '../../engine/recording/recorder.ts';
import { openRepository, type Repository } from '../../git/repository.ts';
import { runShellStep } from '../../process/shell-step.ts';
import type { Host } from '../../project/host.ts';
import { orStopped } from '../../testing/compose-case.ts';
import { type OpenSessions, openSessions } from '../../testing/open-sessions.ts';
import { stagePaths } from '../../testing/paths.ts';
import { steppedClock } from '../../testing/record-step-clock.ts';
import { settled } from '../../testing/session-settings.ts';
import type { TestContext } from '../context.ts';
import type { FoundCase } from '../manifest/find.ts';
import type { CaseManifest, CaseStep } from '../manifest/manifest.ts';
import { stepFailures } from '../perform/failures.ts';
import { type PlayedStep, Player } from '../perform/perform.ts';
import type { Stage } from '../perform/stage.ts';
import { Shelf } from '../replay/library.ts';
import type { LoadedRecording } from '../replay/load.ts';
import { firstMoment, sessionsOf, sharedSessions, taskOf } from '../replay/replay.ts';
import { createVcr } from '../replay/serve.ts';
import type { CaseFailure } from '../result.ts';
import { environmentOf } from './record.ts';

export interface StepRecording {
  readonly found: FoundCase;
  readonly manifest: CaseManifest;
  /** The step that is played for real. */
  readonly step: string;
  readonly context: TestContext;
}

export interface OneLive extends StepRecording {
  readonly loaded: LoadedRecording;
  /** The folder to which everything is written down while it happens. */
  readonly journal: string;
}

export interface PlayedOneLive {
  readonly failures: readonly CaseFailure[];
  readonly played: readonly PlayedStep[];
  readonly redactor: Redactor;
  readonly secrets: readonly Secret[];
  readonly repository: Repository;
}

/** Generous: agents are at work. */
const defaultTimeoutMs = 30 * 60_000;

/** Plays a case with one of its steps for real. Throws REPLAY_DIVERGED if another does not fit any more. */
export async function playOneLive(stage: Stage, options: OneLive): Promise<PlayedOneLive> {
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
