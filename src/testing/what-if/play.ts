import { settled, stagePaths, type TestContext } from '../../cases/context.ts';
import type { FoundCase } from '../../cases/manifest/find.ts';
import type { CaseManifest } from '../../cases/manifest/manifest.ts';
import { countedIds, virtualClock } from '../../cases/perform/clock.ts';
import { type PlayedStep, Player } from '../../cases/perform/perform.ts';
import { fixedEnvironment, type Stage, stageOf } from '../../cases/perform/stage.ts';
import type { LoadedRecording } from '../../cases/replay/load.ts';
import { firstMoment } from '../../cases/replay/replay.ts';
import { orStopped } from '../../cases/snapshot/snapshot.ts';
import { RepriseError, toErrorData } from '../../core/errors.ts';
import { type Json, toJson } from '../../core/json.ts';
import { createConductedWorld } from '../../effects/conductor/conductor.ts';
import { createRedactor } from '../../effects/redact/redact.ts';
import { allTracers } from '../../effects/tracer.ts';
import type { World } from '../../effects/world.ts';
import type { Recording as RecordedActivity } from '../../engine/recording/session-file.ts';
import type { Message, StepEnd } from '../../engine/run/messages.ts';
import { openRepository } from '../../git/repository.ts';
import type { Host } from '../../project/host.ts';
import { memoryStore } from '../../store/memory.ts';
import type { Body } from '../../workflow/model.ts';
import { type CaseHistory, Histories, historyTracer } from './outcomes.ts';
import type { ForcedEnd, Plan } from './override.ts';
import { type AskedWork, guidedPlayer, Stuck } from './scheduler.ts';
import { type ServedWork, serveWork } from './serve.ts';

export interface WhatIfCase {
  readonly found: FoundCase;
  readonly manifest: CaseManifest;
  readonly loaded: LoadedRecording;
  readonly context: TestContext;
}

/** What a play came to. */
export interface PlayedWhatIf {
  readonly histories: readonly CaseHistory[];
  /** Steps whose end nobody knows, as `<step of the case>.<unit>`. */
  readonly unknown: readonly string[];
  /** By the step of the case. */
  readonly served: ReadonlyMap<string, ServedWork>;
  readonly timedOut: readonly string[];
}

const defaultTimeoutMs = 120_000;

/** Plays a case on a stage of its own, with a store in memory. Throws what keeps it from being played. */
export async function playWhatIf(whatIf: WhatIfCase, plan: Plan): Promise<PlayedWhatIf> {
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
  plan: Plan,
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
    if (!work) throw new RepriseError('INTERNAL', `nothing is served in step ${step}`);
    return work;
  };
  const histories = new Histories();
  const player = new Player({ manifest, stage, program: context.program, env, clock, defaultTimeoutMs });
  const world = createConductedWorld({
    player: guidedPlayer({
      recording,
      time: clock,
      expand: value => (value === undefined ? value : redactor.expand(value)),
      endsByItself: work => endsByItself(work, servedIn(work.step)),
      isForced: ({ step, unit }) => plan.endOf(step, unit) !== undefined,
      takesMs: ({ step, unit }) => plan.takesMs(step, unit),
    }),
    tracer: allTracers([
      player.tracer,
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
    const steps = await orStopped(player.play({ world, hostOf, onLeft: async () => {} }), world);
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

function endsByItself(work: AskedWork, served: ServedWork): boolean {
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

/** Work that nobody knows the end of ends the play: what came before is known all the same. */
async function untilStuck(
  play: () => Promise<readonly PlayedStep[]>,
): Promise<{ readonly played: readonly PlayedStep[]; readonly stuck: readonly AskedWork[] }> {
  try {
    return { played: await play(), stuck: [] };
  } catch (error) {
    if (!(error instanceof Stuck) || error.work.length === 0) throw error;
    return { played: [], stuck: error.work };
  }
}

interface ForcedEnds {
  readonly endOf: (unit: string) => ForcedEnd | undefined;
  /** Told of an output that the step could not have given. */
  readonly onProblem: (error: RepriseError) => void;
}

/** The world in which the work of some steps ends as it is told to, whatever it came to. What was cancelled stays so. */
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
      send: (message: T) => mailbox.send(changed(message as unknown as Message, forced) as unknown as T),
    };
  },
});

function changed(message: Message, { endOf, onProblem }: ForcedEnds): Message {
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
      `override.${forced.key} is no output of the step: ${message}`,
      {
        hint,
      },
    );
    onProblem(error);
    return { kind: 'failed', error: toErrorData(error) };
  }
}

/** As the step itself would have checked it. */
function outputFor(body: Body, output: Json): Json {
  switch (body.kind) {
    case 'agent': {
      const said = typeof output === 'string' ? { text: output } : output;
      if (body.output) return toJson(body.output.parse(output));
      if (typeof said === 'object' && said !== null && 'text' in said) return said;
      throw new RepriseError('OUTPUT_INVALID', 'the agent answers with text', {
        hint: 'give it as { text: ... }',
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
