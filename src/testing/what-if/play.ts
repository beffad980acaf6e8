import { orStopped, settled, stagePaths, type TestContext } from '../../cases/index.ts';
import type { CaseManifest, FoundCase } from '../../cases/manifest/index.ts';
import {
  CasePerformance,
  countedIds,
  fixedEnvironment,
  type PlayedStep,
  type Stage,
  stageOf,
  virtualClock,
} from '../../cases/perform/index.ts';
import { firstMoment, type LoadedRecording } from '../../cases/replay/index.ts';
import { type Json, RepriseError, toErrorData, toJson } from '../../core/index.ts';
import { createConductedWorld } from '../../effects/conductor/index.ts';
import { allTracers, type World } from '../../effects/index.ts';
import { createRedactor } from '../../effects/redact/index.ts';
import type { LoopMessage, StepEnd } from '../../engine/index.ts';
import type { RecordedActivity } from '../../engine/recording/index.ts';
import { openRepository } from '../../git/index.ts';
import type { Host } from '../../project/index.ts';
import { memoryStore } from '../../store/index.ts';
import type { Body } from '../../workflow/index.ts';
import { type CaseHistory, Histories, historyTracer } from './outcomes.ts';
import type { ForcedEnd, OverridePlan } from './override.ts';
import { type PendingWork, WhatIfDeadlock, whatIfScheduler } from './scheduler.ts';
import { type ServedWork, serveWork } from './serve.ts';

export interface WhatIfCase {
  readonly found: FoundCase;
  readonly manifest: CaseManifest;
  readonly loaded: LoadedRecording;
  readonly context: TestContext;
}

/** Result of a what-if replay. */
export interface PlayedWhatIf {
  readonly histories: readonly CaseHistory[];
  /** Steps whose end is not in the recording, as `<command of the case>.<unit>`. */
  readonly unknown: readonly string[];
  /** Served sessions and scripts, by command of the case. */
  readonly served: ReadonlyMap<string, ServedWork>;
  /** Commands of the case that did not end within the time limit. */
  readonly timedOut: readonly string[];
}

const defaultTimeoutMs = 120_000;

/** Replays a case in a temporary folder, with a store in memory. Rethrows the first problem of a served recording. */
export async function playWhatIf(whatIf: WhatIfCase, plan: OverridePlan): Promise<PlayedWhatIf> {
  const { found, manifest, context } = whatIf;
  const stage = await stageOf(found, manifest, context);
  try {
    return await playOn(stage, whatIf, plan);
  } finally {
    stage.remove();
  }
}

async function playOn(
  stage: Stage,
  { manifest, loaded, context }: WhatIfCase,
  plan: OverridePlan,
): Promise<PlayedWhatIf> {
  const { recording, sessions, blob } = loaded;
  const env = { ...fixedEnvironment, PATH: context.env['PATH'], HOME: stage.home };
  const redactor = createRedactor({ paths: stagePaths(stage), secrets: [] });
  const clock = virtualClock(plan.startMs ?? firstMoment(recording.entries));
  const ids = countedIds();
  const store = memoryStore();
  const repository = await openRepository({ cwd: stage.repo, env });
  const problems: RepriseError[] = [];
  const served = new Map(
    manifest.steps.map(({ name: step }) => [
      step,
      serveWork({
        step,
        sessions: sessions.filter(session => isOf(step, session)),
        redactor,
        blobs: blob,
        repository: async () => repository,
        live: manifest.live,
        plan,
      }),
    ]),
  );
  const servedIn = (step: string): ServedWork => {
    const work = served.get(step);
    if (!work) throw new RepriseError('INTERNAL', `the case has no command ${step}`);
    return work;
  };
  const histories = new Histories();
  const scheduler = new CasePerformance({
    manifest,
    stage,
    program: context.program,
    env,
    clock,
    defaultTimeoutMs,
  });
  const world = createConductedWorld({
    scheduler: whatIfScheduler({
      recording,
      time: clock,
      expand: value => (value === undefined ? value : redactor.expand(value)),
      endsByItself: work => endsByItself(work, servedIn(work.step)),
      isForced: ({ step, unit }) => plan.endOf(step, unit) !== undefined,
      takesMs: ({ step, unit }) => plan.takesMs(step, unit),
    }),
    tracer: allTracers([
      scheduler.tracer,
      historyTracer(
        histories,
        value => redactor.json(value),
        (step, unit) => plan.started(step, unit),
      ),
    ]),
  });
  const hostOf = ({ name }: { readonly name: string }): Host => ({
    world: withForcedEnds(world, {
      endOf: unit => plan.endOf(name, unit),
      onProblem: error => problems.push(error),
    }),
    clock,
    ids,
    openSession: settled(servedIn(name).openSession, manifest),
    runShell: servedIn(name).runShell,
    openStore: async () => ({ ...store, close: async () => {} }),
    revise: model => {
      const onFailure = plan.policyOf(name);
      return onFailure === undefined ? model : { ...model, onFailure };
    },
  });

  const { played, stuck } = await untilStuck(async () => {
    const steps = await orStopped(scheduler.play({ world, hostOf, onLeft: async () => {} }), world);
    await world.finish();
    return steps;
  });
  const [problem] = [...problems, ...[...served.values()].flatMap(work => work.problems())];
  if (problem) throw problem;
  const missing = [...served.values()].flatMap(work => work.missing());
  return {
    histories: histories.all(),
    unknown: [...new Set([...missing, ...stuck.map(({ step, unit }) => `${step}.${unit}`)])],
    served,
    timedOut: played.filter(({ end }) => end.kind === 'timed-out').map(({ step }) => step.name),
  };
}

const isOf = (step: string, { task }: RecordedActivity): boolean => task.startsWith(`${step}.`);

function endsByItself(work: PendingWork, served: ServedWork): boolean {
  switch (work.kind) {
    case 'session':
      return served.endsByItself(work.key);
    case 'shell':
      return served.shellEndsByItself(work.script);
    case 'function':
    case 'landing':
      return true;
  }
}

/** Stops at work whose end is not in the recording. The results before it are kept. */
async function untilStuck(
  play: () => Promise<readonly PlayedStep[]>,
): Promise<{ readonly played: readonly PlayedStep[]; readonly stuck: readonly PendingWork[] }> {
  try {
    return { played: await play(), stuck: [] };
  } catch (error) {
    if (!(error instanceof WhatIfDeadlock) || error.work.length === 0) throw error;
    return { played: [], stuck: error.work };
  }
}

interface ForcedEnds {
  readonly endOf: (unit: string) => ForcedEnd | undefined;
  /** Receives an error for each output that is not valid for its step. */
  readonly onProblem: (error: RepriseError) => void;
}

/** Wraps a world so that overrides decide how steps end. A cancelled step stays cancelled. */
const withForcedEnds = (world: World, forced: ForcedEnds): World => ({
  open: (lane, body) => world.open(lane, body),
  effect: definition => world.effect(definition),
  fork: body => world.fork(body),
  join: lanes => world.join(lanes),
  cancel: lanes => world.cancel(lanes),
  mailbox: <T>(name: string, options?: Parameters<typeof world.mailbox<T>>[1]) => {
    const mailbox = world.mailbox<T>(name, options);
    return {
      receiveAll: () => mailbox.receiveAll(),
      send: (message: T) => mailbox.send(changed(message as unknown as LoopMessage, forced) as unknown as T),
    };
  },
});

function changed(message: LoopMessage, { endOf, onProblem }: ForcedEnds): LoopMessage {
  if (message.kind !== 'ended' || message.end.kind === 'cancelled') return message;
  const { step, unit } = message.node.node;
  const forced = endOf(unit);
  return forced ? { ...message, end: endFrom(forced, message.end, { body: step.body, onProblem }) } : message;
}

function endFrom(
  forced: ForcedEnd,
  end: StepEnd,
  { body, onProblem }: { readonly body: Body } & Pick<ForcedEnds, 'onProblem'>,
): StepEnd {
  if (forced.kind === 'failure') return { kind: 'failed', error: forced.error };
  try {
    const artifacts = end.kind === 'completed' ? end.artifacts : undefined;
    return { kind: 'completed', output: outputFor(body, forced.output), ...(artifacts ? { artifacts } : {}) };
  } catch (thrown) {
    const { message, hint } = toErrorData(thrown);
    const error = new RepriseError(
      'OUTPUT_INVALID',
      `override.${forced.key} is not a valid output of the step: ${message}`,
      {
        hint,
      },
    );
    onProblem(error);
    return { kind: 'failed', error: toErrorData(error) };
  }
}

/** Validates an output as the step itself does. Throws OUTPUT_INVALID. */
function outputFor(body: Body, output: Json): Json {
  switch (body.kind) {
    case 'agent': {
      const reply = typeof output === 'string' ? { text: output } : output;
      if (body.output) return toJson(body.output.parse(output));
      if (typeof reply === 'object' && reply !== null && 'text' in reply) return reply;
      throw new RepriseError('OUTPUT_INVALID', 'an agent without an output schema returns text', {
        hint: 'pass a string or { text: ... }',
      });
    }
    case 'function':
    case 'run':
      return body.parseOutput ? toJson(body.parseOutput(output)) : output;
    case 'land':
    case 'built-in':
    case 'uses':
    case 'approve':
      return output;
  }
}
