import { spawnSync } from 'node:child_process';
import { cpSync, existsSync, rmSync, statfsSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { basename, join } from 'node:path';
import { isDeepStrictEqual } from 'node:util';
import { lazySessions } from '../../agents/index.ts';
import { RepriseError } from '../../core/index.ts';
import { createConductedWorld } from '../../effects/conductor/index.ts';
import { roundRobinScheduler } from '../../effects/schedulers/index.ts';
import { removeLeftovers, runShellStep, temporaryFolder } from '../../process/index.ts';
import { type Once, rememberOnce } from '../../project/index.ts';
import type { TestContext } from '../context.ts';
import { groupsOf } from '../manifest/fields.ts';
import type { FoundCase } from '../manifest/find.ts';
import type { CaseManifest, CaseStep } from '../manifest/manifest.ts';
import { advancingClock, stableIds } from '../perform/clock.ts';
import { CasePerformance } from '../perform/perform.ts';
import { fixedEnvironment, type Stage, stageOf } from '../perform/stage.ts';
import { opensLanes } from '../perform/step-io.ts';
import { type LoadedRecording, loadRecording } from '../replay/load.ts';
import { firstMoment } from '../replay/replay.ts';

/** A case that can be played many times from the same starting point. */
export interface PreparedCase {
  readonly found: FoundCase;
  /** Manifest with the explored commands only. The commands before them have already run. */
  readonly manifest: CaseManifest;
  readonly context: TestContext;
  readonly loaded: LoadedRecording;
  readonly stage: Stage;
  /** Suffix that distinguishes it from copies that are played in parallel. */
  readonly place: string;
  readonly env: Readonly<Record<string, string | undefined>>;
  /** Start of the recording, in epoch milliseconds. */
  readonly startMs: number;
  /** Cache for values that are the same in every schedule. */
  readonly once: Once;
  /** Whether a commit must be verified before it lands. */
  readonly verifies: boolean;
  /** Whether a key is only used within one command. */
  readonly isPrivate: (key: string) => boolean;
  /** Restores the repository to its state before the first explored command. */
  restore(): void;
  /** Prepares a copy in another folder. Closing this case closes the copy too. */
  another(): Promise<PreparedCase>;
  close(): void;
}

/** Runs the commands before the first explored one, once. Throws USAGE or CANNOT_EXPLORE. */
export async function prepareCase(
  found: FoundCase,
  manifest: CaseManifest,
  context: TestContext,
): Promise<PreparedCase> {
  const { before, explored } = splitSteps(manifest);
  const loaded = loadRecording(found, manifest, context.cwd);
  const cut = loaded.sessions.find(
    session => session.cut !== undefined || ('why' in session && session.why?.kind === 'suspend'),
  );
  if (cut)
    throw new RepriseError(
      'CANNOT_EXPLORE',
      `the session ${cut.file} was interrupted while it was recorded`,
      {
        hint: 'its ending is unknown; explore a case in which every session finished',
      },
    );
  return prepareOn(quickFolder(context.env), { found, manifest, context, loaded, before, explored });
}

interface SplitSteps {
  readonly before: readonly CaseStep[];
  readonly explored: readonly CaseStep[];
}

interface OpenedCase extends SplitSteps, Pick<PreparedCase, 'found' | 'manifest' | 'context' | 'loaded'> {}

async function prepareOn(within: string, opened: OpenedCase): Promise<PreparedCase> {
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
 * Whether only lanes of one command use a key: mailboxes, receipts, the history and the workspace of a run. Their order
 * is not explored between commands. A command that takes over a run first writes its lease, which is not private.
 */
const isInsideAStep = (key: string): boolean => /^(mailbox|receipts|inbox|store|wt|ports)\b/.test(key);

const copying = { recursive: true, verbatimSymlinks: true, preserveTimestamps: true } as const;

/** Splits off the commands before the first explored one, and drops trailing shell commands, which only check results. */
function splitSteps(manifest: CaseManifest): SplitSteps {
  const groups = groupsOf(manifest);
  const first = groups.findIndex(group => group.some(({ command }) => opensLanes(command)));
  if (first < 0)
    throw new RepriseError('USAGE', `${manifest.name} has no command that can be explored`, {
      hint: 'a case to explore needs a run, resume, replay, cancel or worker command',
    });
  const last = groups.findLastIndex(group => group.some(({ command }) => opensLanes(command)));
  return { before: groups.slice(0, first).flat(), explored: groups.slice(first, last + 1).flat() };
}

interface BeforeContext {
  readonly manifest: CaseManifest;
  readonly stage: Stage;
  readonly context: TestContext;
  readonly env: PreparedCase['env'];
  readonly startMs: number;
}

async function playBefore({ manifest, stage, context, env, startMs }: BeforeContext): Promise<void> {
  const clock = advancingClock(startMs);
  const performance = new CasePerformance({
    manifest,
    stage,
    program: context.program,
    env,
    clock,
    defaultTimeoutMs,
  });
  const world = createConductedWorld({ scheduler: roundRobinScheduler(clock), tracer: performance.tracer });
  const played = await performance.play({
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
        `command ${step.name} of ${manifest.name} failed:\n${output.trimEnd()}`,
      );
  if (!existsSync(join(stage.repo, '.git')))
    throw new RepriseError(
      'CANNOT_EXPLORE',
      `${manifest.name} has no git repository before its first explored command`,
    );
}

const defaultTimeoutMs = 120_000;

const inMemory = '/dev/shm';
const leastRoom = 1 << 30;

/**
 * Returns the folder for repositories: a file system in memory, if there is one with enough room that allows execution.
 * On a disk, most of the time would go into creating and removing small files.
 */
export function quickFolder(env: TestContext['env'], memory = inMemory): string {
  if (env['TMPDIR'] !== undefined) return tmpdir();
  try {
    const { bavail, bsize } = statfsSync(memory);
    if (bavail * bsize < leastRoom || !canRunPrograms(memory)) return tmpdir();
    removeLeftovers(memory);
    return memory;
  } catch {
    return tmpdir();
  }
}

function canRunPrograms(folder: string): boolean {
  const own = temporaryFolder('case', folder);
  try {
    const program = join(own, 'program');
    writeFileSync(program, '#!/bin/sh\n', { mode: 0o700 });
    return spawnSync(program).status === 0;
  } finally {
    rmSync(own, { recursive: true, force: true });
  }
}

/**
 * Groups the commands of a concurrent group that differ only in their names, so that swapping them gives the same
 * case. A command that the case mentions by name is left out.
 */
export function symmetricSteps(manifest: CaseManifest): readonly (readonly string[])[] {
  const texts = [
    ...Object.values(manifest.files),
    ...Object.values(manifest.scripts),
    ...manifest.invariants.map(invariant => JSON.stringify(invariant)),
    ...manifest.claims.map(claim => JSON.stringify(claim)),
  ].join('\n');
  const groups: CaseStep[][] = [];
  for (const step of manifest.steps) {
    if (step.concurrentGroup === undefined || namesOf(step).some(name => mentions(texts, name))) continue;
    const group = groups.find(([first]) => first && areSymmetric(manifest, first, step));
    if (group) group.push(step);
    else groups.push([step]);
  }
  return groups.filter(({ length }) => length > 1).map(group => group.map(({ name }) => name));
}

function areSymmetric({ triggers }: CaseManifest, a: CaseStep, b: CaseStep): boolean {
  const [ours, theirs] = [a, b].map(({ name, position: _, args, ...rest }) => ({
    ...rest,
    args: args.map((arg, at) => (isName(args, at) ? '' : arg)),
    triggers: triggers.filter(({ step }) => step === name).map(nameless),
  }));
  return isDeepStrictEqual(ours, theirs);
}

const nameless = ({ step: _, position: __, ...rest }: CaseManifest['triggers'][number]) => rest;

const isName = (args: readonly string[], at: number): boolean => args[at - 1] === '--name';

const namesOf = ({ name, args }: CaseStep): readonly string[] => [
  name,
  ...args.filter((_, at) => isName(args, at)),
];

const mentions = (text: string, name: string): boolean =>
  new RegExp(`(?<!\\w)${name.replaceAll(/\W/g, '\\$&')}(?!\\w)`).test(text);
