import { toJson } from '../../core/json.ts';
import type { RunBody, WorkRules } from '../../workflow/model.ts';
import { type StepEnd, thrownError } from '../run/messages.ts';
import { agentWork } from './agent/agent-step.ts';
import { agentNamed } from './agent/conversation.ts';
import { commandError, firstLine, runAt, runInTurn } from './commands.ts';
import type { DoWork, WorkLane } from './contract.ts';
import { landWork } from './landing.ts';
import { type Done, endOfThrown, failedWith, isFenced } from './outcome.ts';
import { cleanUp, type Place, preparePlace, projectPlace } from './workspace.ts';

/** Does the work of a step that has some outside of this process. Only what nobody foresaw is thrown. */
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
      // Before a workspace is made for nobody.
      agentNamed(lane.effects, body.agent);
      return workAt(lane, body.work, place => agentWork(lane, body, place));
    case 'run': {
      const rules = body.work;
      if (rules) return workAt(lane, rules, place => scriptWork(lane, body, place));
      return (await scriptWork(lane, body, projectPlace(lane))).end;
    }
    case 'land':
      return landWork(lane, body);
    case 'built-in': {
      const builtIn = lane.effects.builtIn(body.name);
      if (body.work) return workAt(lane, body.work, place => builtIn(lane, place));
      return (await builtIn(lane, projectPlace(lane))).end;
    }
    case 'function':
    case 'uses':
    case 'approve':
      throw new TypeError(`a ${body.kind} step has no work to be done here`);
  }
}

async function workAt(
  lane: WorkLane,
  rules: WorkRules,
  body: (place: Place) => Promise<Done>,
): Promise<StepEnd> {
  const place = await preparePlace(lane, rules);
  try {
    const done = await attempt(lane, { rules, place, body });
    if (done.kind === 'thrown') {
      if (isFenced(done.thrown)) throw done.thrown;
      await cleanUp(lane, { rules, place, done: { end: cancelledEnd, summary: 'unfinished work' } });
      throw done.thrown;
    }
    return await cleanUp(lane, { rules, place, done });
  } finally {
    if (place.portsKey !== undefined) await lane.effects.releasePorts(place.portsKey);
  }
}

const cancelledEnd: StepEnd = { kind: 'cancelled', reason: 'cancelled' };

interface Attempt {
  readonly rules: WorkRules;
  readonly place: Place;
  readonly body: (place: Place) => Promise<Done>;
}

async function attempt(
  lane: WorkLane,
  { rules, place, body }: Attempt,
): Promise<({ readonly kind: 'done' } & Done) | { readonly kind: 'thrown'; readonly thrown: unknown }> {
  try {
    const notReady = await setUp(lane, rules, place);
    if (notReady) return { kind: 'done', end: notReady, summary: 'the setup failed' };
    const done = await body(place);
    if (done.end.kind !== 'completed' || rules.artifacts.length === 0) return { kind: 'done', ...done };
    const { effects, runId, unit } = lane;
    const artifacts = await effects.collectArtifacts({
      runId,
      unit,
      folder: place.folder,
      rules: rules.artifacts,
    });
    return { kind: 'done', ...done, end: { ...done.end, artifacts } };
  } catch (thrown) {
    const end = endOfThrown(thrown);
    return end ? { kind: 'done', end, summary: 'unfinished work' } : { kind: 'thrown', thrown };
  }
}

async function setUp(lane: WorkLane, rules: WorkRules, place: Place): Promise<StepEnd | undefined> {
  const { effects, scope } = lane;
  if (place.workspace && !place.needsSetup) return undefined;
  const shared = place.workspace ? effects.worktrees.setup : [];
  const commands = [
    ...shared.map(script => ({ text: script, command: { script, shell: 'bash' as const, env: {} } })),
    ...rules.setup.map(({ text, command }) => ({ text, command: command(scope) })),
  ];
  const failed = await runInTurn(lane, { place, what: 'setup', commands });
  if (failed) return failedWith(commandError('SETUP_FAILED', 'the setup command', failed));
  if (place.workspace) await effects.markSetUp({ path: place.folder, done: true });
  return undefined;
}

async function scriptWork(lane: WorkLane, body: RunBody, place: Place): Promise<Done> {
  const { scope } = lane;
  const command = body.command(scope);
  const summary = firstLine(command.script);
  const { end } = await runAt(lane, { place, command });
  if (end.kind === 'cancelled') return { end: cancelledEnd, summary };
  if (end.kind === 'failed') return { end: failedWith(end.error), summary };
  const commands = (body.work?.checks ?? []).map(({ text, command }) => ({ text, command: command(scope) }));
  const failed = await runInTurn(lane, { place, what: 'check', commands });
  if (failed) return { end: failedWith(commandError('CHECK_FAILED', 'the check', failed)), summary };
  try {
    const output = body.parseOutput ? toJson(body.parseOutput(end.output)) : end.output;
    return { end: { kind: 'completed', output }, summary };
  } catch (thrown) {
    return { end: failedWith(thrownError(thrown)), summary };
  }
}
