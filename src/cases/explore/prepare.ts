import { spawnSync } from 'node:child_process';
import {
  cpSync,
  existsSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  statfsSync,
  statSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { basename, join } from 'node:path';
import { lazySessions } from '../../agents/open-session.ts';
import { RepriseError } from '../../core/errors.ts';
import { createConductedWorld } from '../../effects/conductor/conductor.ts';
import { freePlayer } from '../../effects/schedulers/round-robin.ts';
import { runShellStep } from '../../process/shell-step.ts';
import { isSameProcess, type ProcessIdentity, thisProcess } from '../../process/table.ts';
import { type Once, rememberOnce } from '../../project/host.ts';
import type { TestContext } from '../context.ts';
import { groupsOf } from '../manifest/fields.ts';
import type { FoundCase } from '../manifest/find.ts';
import type { CaseManifest, CaseStep } from '../manifest/manifest.ts';
import { advancingClock, stableIds } from '../perform/clock.ts';
import { Player } from '../perform/perform.ts';
import { fixedEnvironment, ownerFile, type Stage, stageOf, stagePrefix } from '../perform/stage.ts';
import { opensLanes } from '../perform/step-io.ts';
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
  const clock = advancingClock(startMs);
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

const inMemory = '/dev/shm';
const leastRoom = 1 << 30;
const longestLifeMs = 24 * 60 * 60_000;

/**
 * Where repositories come and go by the hundred: a file system in memory, if there is one that has room and from which
 * programs can be run. On a disk most of the time would go into making and removing small files.
 */
export function quickFolder(env: TestContext['env'], memory = inMemory): string {
  if (env['TMPDIR'] !== undefined) return tmpdir();
  try {
    const { bavail, bsize } = statfsSync(memory);
    if (bavail * bsize < leastRoom || !canRunPrograms(memory)) return tmpdir();
    removeForgotten(memory);
    return memory;
  } catch {
    return tmpdir();
  }
}

function canRunPrograms(folder: string): boolean {
  const own = mkdtempSync(join(folder, stagePrefix));
  try {
    const program = join(own, 'program');
    writeFileSync(program, '#!/bin/sh\n', { mode: 0o700 });
    return spawnSync(program).status === 0;
  } finally {
    rmSync(own, { recursive: true, force: true });
  }
}

/** What a killed process left behind takes memory until somebody removes it. */
function removeForgotten(folder: string): void {
  for (const name of readdirSync(folder)) {
    if (!name.startsWith(stagePrefix)) continue;
    const path = join(folder, name);
    try {
      if (isForgotten(path)) rmSync(path, { recursive: true, force: true });
    } catch {
      // It is of another user, or somebody else removes it.
    }
  }
}

/** If nobody can tell whether its owner lives, because it is of another machine or container, its age says it. */
function isForgotten(stage: string): boolean {
  const owner = ownerOf(stage);
  if (owner?.host === thisProcess().host) return !isSameProcess(owner);
  return Date.now() - statSync(stage).mtimeMs > longestLifeMs;
}

function ownerOf(stage: string): (ProcessIdentity & { readonly host: string }) | undefined {
  try {
    return JSON.parse(readFileSync(ownerFile(stage), 'utf8'));
  } catch {
    return undefined;
  }
}
