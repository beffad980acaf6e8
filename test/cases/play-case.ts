import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { lazySessions } from '../../src/agents/open-session.ts';
import { settled, stagePaths, type TestContext } from '../../src/cases/context.ts';
import { applyInModel, inModel, learnRecordings } from '../../src/cases/explore/model-handlers.ts';
import { groupsOf } from '../../src/cases/manifest/fields.ts';
import { type FoundCase, findCases } from '../../src/cases/manifest/find.ts';
import { loadCase } from '../../src/cases/manifest/load.ts';
import type { CaseManifest } from '../../src/cases/manifest/manifest.ts';
import { countedIds, virtualClock } from '../../src/cases/perform/clock.ts';
import { CasePerformance, type PlayedStep } from '../../src/cases/perform/perform.ts';
import { fixedEnvironment, type Stage, stageOf } from '../../src/cases/perform/stage.ts';
import { Shelf } from '../../src/cases/replay/library.ts';
import { loadRecording } from '../../src/cases/replay/load.ts';
import { sessionsOf, sharedSessions, taskOf } from '../../src/cases/replay/replay.ts';
import { createVcr, type Vcr } from '../../src/cases/replay/serve.ts';
import type { AppliedMark } from '../../src/cases/replay/serve-session.ts';
import { orStopped } from '../../src/cases/snapshot/snapshot.ts';
import { runProgram } from '../../src/cli/program.ts';
import type { RepriseError } from '../../src/core/errors.ts';
import { createConductedWorld } from '../../src/effects/conductor/conductor.ts';
import { createRedactor } from '../../src/effects/redact/redact.ts';
import { roundRobinScheduler } from '../../src/effects/schedulers/round-robin.ts';
import { allTracers, createRecorder } from '../../src/effects/tracer.ts';
import { modelOf } from '../../src/git/model/load.ts';
import type { Model } from '../../src/git/model/repository.ts';
import { openRepository } from '../../src/git/repository.ts';
import { noLog } from '../../src/process/output-file.ts';
import { runShellStep } from '../../src/process/shell-step.ts';
import { type Host, type Once, rememberOnce } from '../../src/project/host.ts';
import { memoryStore } from '../../src/store/memory.ts';

const root = join(import.meta.dirname, '../..');

const context: TestContext = {
  program: runProgram,
  env: process.env,
  cwd: root,
  version: '0.0.0',
  packages: { installed: join(root, 'node_modules'), reprise: root },
};

const withLanes = new Set(['run', 'worker', 'resume']);

/** A case whose commands before the first explored one have run. */
export interface ReadyCase {
  readonly found: FoundCase;
  readonly manifest: CaseManifest;
  readonly stage: Stage;
  readonly env: Readonly<Record<string, string | undefined>>;
  readonly loaded: ReturnType<typeof loadRecording>;
  readonly once: Once;
}

/** Runs the commands before the first one with lanes, and drops those after the last one with lanes. */
export async function readyCase(name: string): Promise<ReadyCase> {
  const [found] = findCases({ cwd: root, names: [name] }).cases;
  if (!found) throw new Error(`no case ${name}`);
  const manifest = loadCase({ ...found, text: readFileSync(found.file, 'utf8') });
  const stage = await stageOf(found, manifest, context);
  const env = { ...fixedEnvironment, PATH: process.env['PATH'], HOME: stage.home };
  const groups = groupsOf(manifest);
  const hasLanes = (group: (typeof groups)[number]) => group.some(({ command }) => withLanes.has(command));
  const first = groups.findIndex(hasLanes);
  const explored = groups.slice(first, groups.findLastIndex(hasLanes) + 1).flat();
  const loaded = loadRecording(found, manifest, root);
  const ready = { found, stage, env, loaded, once: rememberOnce() };
  const before = { ...manifest, steps: groups.slice(0, first).flat(), triggers: [] };
  await playOn({ ...ready, manifest: before }, undefined);
  return { ...ready, manifest: { ...manifest, steps: explored } };
}

/** Loads the model that a case is played on. */
export async function modelOfCase({ stage, env, loaded }: ReadyCase): Promise<Model> {
  const repository = await openRepository({ cwd: stage.repo, env });
  const model = await modelOf(repository);
  await learnRecordings(model, { repository, recordings: loaded.sessions, blob: loaded.blob });
  return model;
}

export interface CasePlay {
  readonly played: readonly PlayedStep[];
  readonly applied: readonly AppliedMark[];
  readonly missing: readonly RepriseError[];
  readonly problems: readonly RepriseError[];
  readonly entries: number;
}

/** Plays a case with lanes taking turns: on the model if there is one, otherwise on git. */
export async function playOn(ready: ReadyCase, model: Model | undefined): Promise<CasePlay> {
  const { found, manifest, stage, env, loaded, once } = ready;
  const clock = virtualClock();
  const ids = countedIds();
  const player = new CasePerformance({
    manifest,
    stage,
    program: runProgram,
    env,
    clock,
    defaultTimeoutMs: 120_000,
  });
  const recorder = createRecorder();
  const world = createConductedWorld({
    scheduler: roundRobinScheduler(clock),
    tracer: allTracers([recorder.tracer, player.tracer]),
    ...(model ? { pace: 'microtask', remembersOrigins: false } : {}),
  });
  const repository = openRepository({ cwd: stage.repo, env });
  const redactor = createRedactor({ paths: stagePaths(stage), secrets: [] });
  const shared = new Shelf(sharedSessions(manifest, loaded.sessions));
  const vcrs = new Map<string, Vcr>();
  const missing: RepriseError[] = [];
  const store = memoryStore();
  const hostOf = ({ name }: { readonly name: string }): Host => {
    const vcr = createVcr({
      sessions: sessionsOf(name, loaded.sessions),
      shared,
      task: unit => taskOf(name, unit),
      redactor,
      blobs: loaded.blob,
      repository: () => repository,
      applyDeltas: true,
      live: [],
      openSession: lazySessions,
      runShell: runShellStep,
      rerecord: `reprise test ${found.name} --record`,
      ...(model ? { applyInstead: applyInModel(model), openLog: noLog } : {}),
    });
    vcrs.set(name, vcr);
    return {
      world,
      clock,
      ids,
      openSession: settled(vcr.openSession, manifest),
      runShell: vcr.runShell,
      openStore: async () => ({ ...store, close: async () => {} }),
      ...(model ? { once, surround: inModel({ model, onMissing: error => missing.push(error) }) } : {}),
    };
  };
  const played = await orStopped(player.play({ world, hostOf, onLeft: async () => {} }), world);
  await world.finish();
  const all = [...vcrs.values()];
  return {
    played,
    missing,
    applied: all.flatMap(vcr => vcr.applied()),
    problems: all.flatMap(vcr => vcr.problems()),
    entries: recorder.recording().entries.length,
  };
}
