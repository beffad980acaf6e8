import { toJson } from '../../core/index.ts';
import type { RunBody, WorkRules } from '../../workflow/index.ts';
import { type StepEnd, thrownError } from '../run/messages.ts';
import { agentWork } from './agent/agent-step.ts';
import { agentNamed } from './agent/conversation.ts';
import { commandError, firstLine, runAt, runInTurn } from './commands.ts';
import type { BuiltInWork, DoWork, WorkLane } from './contract.ts';
import { landWork } from './landing.ts';
import { endOfThrown, failedWith, isFenced, type WorkOutcome } from './outcome.ts';
import { cleanUp, prepareLocation, projectLocation, type WorkLocation } from './workspace.ts';

/** Performs the work of a step that acts outside of this process. Throws only unexpected errors. */
export const doWork: DoWork = async lane => {
  try {
    return await work(lane);
  } catch (thrown) {
    const end = endOfThrown(thrown);
    if (end) return end;
    throw thrown;
  }
};

async function work(lane: WorkLane): Promise<StepEnd> {
  const { body } = lane.model;
  switch (body.kind) {
    case 'agent':
      // Throws for an unknown agent before a workspace is created.
      agentNamed(lane.effects, body.agent);
      return workAt(lane, body.work, (own, location) => agentWork(own, body, location));
    case 'run': {
      const rules = body.work;
      if (rules) return workAt(lane, rules, (own, location) => scriptWork(own, body, location));
      return (await scriptWork(lane, body, projectLocation(lane))).end;
    }
    case 'land':
      return landWork(lane, body);
    case 'built-in': {
      const builtIn = lane.effects.builtIn(body.name);
      if (body.work) return workAt(lane, body.work, builtIn);
      return (await builtIn(lane, projectLocation(lane))).end;
    }
    case 'function':
    case 'uses':
    case 'approve':
      throw new TypeError(`a ${body.kind} step does no work outside of this process`);
  }
}

async function workAt(lane: WorkLane, rules: WorkRules, body: BuiltInWork): Promise<StepEnd> {
  const location = await prepareLocation(lane, rules);
  try {
    const done = await attempt(lane, { rules, location, body });
    if (isCancelled(done) && (await lane.effects.isSuspending(lane))) return { kind: 'suspended' };
    if (done.kind === 'thrown') {
      if (isFenced(done.thrown)) throw done.thrown;
      await cleanUp(lane, { rules, location, done: { end: cancelledEnd, summary: 'unfinished work' } });
      throw done.thrown;
    }
    return await cleanUp(lane, { rules, location, done });
  } finally {
    if (location.portsKey !== undefined) await lane.effects.releasePorts(location.portsKey);
  }
}

const cancelledEnd: StepEnd = { kind: 'cancelled', reason: 'cancelled' };

const isCancelled = (done: Awaited<ReturnType<typeof attempt>>): boolean =>
  done.kind === 'done' && done.end.kind === 'cancelled';

interface AttemptContext {
  readonly rules: WorkRules;
  readonly location: WorkLocation;
  readonly body: BuiltInWork;
}

/** Forgets sessions whose work is gone with their folder: it has to be done again. */
const withoutLostWork = (lane: WorkLane, { isLost }: WorkLocation): WorkLane =>
  isLost
    ? {
        ...lane,
        known: { ...lane.known, session: undefined, answer: undefined, answers: 0, transitions: [] },
      }
    : lane;

async function attempt(
  lane: WorkLane,
  { rules, location, body }: AttemptContext,
): Promise<
  ({ readonly kind: 'done' } & WorkOutcome) | { readonly kind: 'thrown'; readonly thrown: unknown }
> {
  try {
    const notReady = await setUp(lane, rules, location);
    if (notReady) return { kind: 'done', end: notReady, summary: 'the setup failed' };
    const done = await body(withoutLostWork(lane, location), location);
    if (done.end.kind !== 'completed' || rules.artifacts.length === 0) return { kind: 'done', ...done };
    const { effects, runId, unit } = lane;
    const artifacts = await effects.collectArtifacts({
      runId,
      unit,
      folder: location.folder,
      rules: rules.artifacts,
    });
    return { kind: 'done', ...done, end: { ...done.end, artifacts } };
  } catch (thrown) {
    const end = endOfThrown(thrown);
    return end ? { kind: 'done', end, summary: 'unfinished work' } : { kind: 'thrown', thrown };
  }
}

async function setUp(lane: WorkLane, rules: WorkRules, location: WorkLocation): Promise<StepEnd | undefined> {
  const { effects, scope, runId, lease } = lane;
  if (location.workspace && !location.needsSetup) return undefined;
  const shared = location.workspace ? effects.worktrees.setup : [];
  const commands = [
    ...shared.map(script => ({ text: script, command: { script, shell: 'bash' as const, env: {} } })),
    ...rules.setup.map(({ text, command }) => ({ text, command: command(scope) })),
  ];
  const failed = await runInTurn(lane, { location, what: 'setup', commands });
  if (failed) return failedWith(commandError('SETUP_FAILED', 'the setup command', failed));
  if (location.workspace)
    await effects.markSetUp({ path: location.folder, done: true, fence: { runId, lease } });
  return undefined;
}

async function scriptWork(lane: WorkLane, body: RunBody, location: WorkLocation): Promise<WorkOutcome> {
  const { scope } = lane;
  const command = body.command(scope);
  const summary = firstLine(command.script);
  const { end } = await runAt(lane, { location, command });
  if (end.kind === 'cancelled') return { end: cancelledEnd, summary };
  if (end.kind === 'failed') return { end: failedWith(end.error), summary };
  const commands = (body.work?.checks ?? []).map(({ text, command }) => ({ text, command: command(scope) }));
  const failed = await runInTurn(lane, { location, what: 'check', commands });
  if (failed) return { end: failedWith(commandError('CHECK_FAILED', 'the check', failed)), summary };
  try {
    const output = body.parseOutput ? toJson(body.parseOutput(end.output)) : end.output;
    return { end: { kind: 'completed', output }, summary };
  } catch (thrown) {
    return { end: failedWith(thrownError(thrown)), summary };
  }
}
