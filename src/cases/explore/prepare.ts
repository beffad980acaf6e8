import { cpSync, existsSync, rmSync } from 'node:fs';
import { basename, join } from 'node:path';
import { lazySessions } from '../../agents/open-session.ts';
import { RepriseError } from '../../core/errors.ts';
import { createConductedWorld } from '../../effects/conductor/conductor.ts';
import { freePlayer } from '../../effects/schedulers/round-robin.ts';
import { runShellStep } from '../../process/shell-step.ts';
import { type Once, rememberOnce } from '../../project/host.ts';
import { opensLanes } from '../../testing/command-effect.ts';
import { quickFolder } from '../../testing/explore/quick-folder.ts';
import { stableIds } from '../../testing/explore/stable-ids.ts';
import { virtualClock } from '../../testing/explore/virtual-clock.ts';
import { groupsOf } from '../../testing/manifest/groups.ts';
import type { TestContext } from '../context.ts';
import type { FoundCase } from '../manifest/find.ts';
import type { CaseManifest, CaseStep } from '../manifest/manifest.ts';
import { Player } from '../perform/perform.ts';
import { fixedEnvironment, type Stage, stageOf } from '../perform/stage.ts';
import { type LoadedRecording, loadRecording } from '../replay/load.ts';
import { firstMoment } from '../replay/replay.ts';

/** A case that is ready to be played many times from the same moment on. */
export interface PreparedCase {
  readonly found: FoundCase;
  /** Of what is played in every schedule; what comes before the first of it has been played. */
  readonly manifest: CaseManifest;
  readonly context: TestContext;
  readonly loaded: LoadedRecording;
  readonly stage: Stage;
  /** What tells it from others of this process that are played at the same time. */
  readonly place: string;
  readonly env: Readonly<Record<string, string | undefined>>;
  /** When the recording began. */
  readonly startMs: number;
  /** What is the same in every schedule is made once. */
  readonly once: Once;
  /** What lands has to be verified before. */
  readonly verifies: boolean;
  /** Whether a key is touched inside of one step only. */
  readonly isPrivate: (key: string) => boolean;
  /** Brings the repository back to how it is before every schedule. */
  restore(): void;
  /** The same in another folder, which is closed with this one. */
  another(): Promise<PreparedCase>;
  close(): void;
}

/** Plays what comes before the first step with lanes, once. Throws what keeps a case from being explored. */
export async function prepareCase(
  found: FoundCase,
  manifest: CaseManifest,
  context: TestContext,
): Promise<PreparedCase> {
  const { before, explored } = splitSteps(manifest);
  const loaded = loadRecording(found, manifest, context.cwd);
  const cut = loaded.sessions.find(session => session.cut !== undefined);
  if (cut)
    throw new RepriseError('CANNOT_EXPLORE', `${cut.file} was interrupted when it was recorded`, {
      hint: 'nobody knows how it would have gone on: explore a case whose sessions came to their end',
    });
  return prepareOn(quickFolder(context.env), { found, manifest, context, loaded, before, explored });
}

interface Split {
  readonly before: readonly CaseStep[];
  readonly explored: readonly CaseStep[];
}

interface Opened extends Split, Pick<PreparedCase, 'found' | 'manifest' | 'context' | 'loaded'> {}

async function prepareOn(within: string, opened: Opened): Promise<PreparedCase> {
  const { found, manifest, context, loaded, before, explored } = opened;
  const stage = await stageOf(found, manifest, context, { within });
  try {
    const env = { ...fixedEnvironment, PATH: context.env['PATH'], HOME: stage.home };
    const startMs = firstMoment(loaded.recording.entries);
    await playBefore({
      manifest: { ...manifest, steps: before, triggers: [] },
      stage,
      context,
      env,
      startMs,
    });
    const template = join(stage.folder, 'template');
    cpSync(stage.repo, template, copying);
    const others: PreparedCase[] = [];
    return {
      found,
      manifest: { ...manifest, steps: explored },
      context,
      loaded,
      stage,
      place: `@${basename(stage.folder)}`,
      env,
      startMs,
      once: rememberOnce(),
      verifies: loaded.recording.entries.some(({ op }) => op.startsWith('land.verify')),
      isPrivate: explored.length > 1 ? isInsideAStep : () => false,
      restore: () => {
        rmSync(stage.repo, { recursive: true, force: true, maxRetries: 3 });
        cpSync(template, stage.repo, copying);
      },
      another: async () => {
        const other = await prepareOn(within, opened);
        others.push(other);
        return other;
      },
      close: () => {
        for (const other of others) other.close();
        stage.remove();
      },
    };
  } catch (error) {
    stage.remove();
    throw error;
  }
}

/**
 * What lanes of one process do to each other is not what is explored between several: mail, receipts, a run's own
 * history and workspace. Whoever takes over a run of another touches its lease first, which is no such key.
 */
const isInsideAStep = (key: string): boolean => /^(mailbox|receipts|inbox|store|wt|ports)\b/.test(key);

const copying = { recursive: true, verbatimSymlinks: true, preserveTimestamps: true } as const;

/** The steps before the first that has lanes, and the rest without shell steps at its end, which only look. */
function splitSteps(manifest: CaseManifest): Split {
  const groups = groupsOf(manifest);
  const first = groups.findIndex(group => group.some(({ command }) => opensLanes(command)));
  if (first < 0)
    throw new RepriseError('USAGE', `${manifest.name} has no step whose order could be another one`, {
      hint: 'steps with lanes are run, resume and worker',
    });
  const last = groups.findLastIndex(group => group.some(({ command }) => opensLanes(command)));
  return { before: groups.slice(0, first).flat(), explored: groups.slice(first, last + 1).flat() };
}

interface Before {
  readonly manifest: CaseManifest;
  readonly stage: Stage;
  readonly context: TestContext;
  readonly env: PreparedCase['env'];
  readonly startMs: number;
}

async function playBefore({ manifest, stage, context, env, startMs }: Before): Promise<void> {
  const clock = virtualClock(startMs);
  const player = new Player({ manifest, stage, program: context.program, env, clock, defaultTimeoutMs });
  const world = createConductedWorld({ player: freePlayer(clock), tracer: player.tracer });
  const played = await player.play({
    world,
    hostOf: ({ name }) => ({
      world,
      clock,
      ids: stableIds(name),
      openSession: lazySessions,
      runShell: runShellStep,
    }),
    onLeft: async () => {},
  });
  await world.finish();
  for (const { step, end, output } of played)
    if (end.kind !== 'exited' || end.code !== (step.expect.exit ?? 0))
      throw new RepriseError(
        'CANNOT_EXPLORE',
        `step ${step.name} of ${manifest.name} failed:\n${output.trimEnd()}`,
      );
  if (!existsSync(join(stage.repo, '.git')))
    throw new RepriseError('CANNOT_EXPLORE', `${manifest.name} has no repository after its first steps`);
}

const defaultTimeoutMs = 120_000;
