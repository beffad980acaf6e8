import { toTimestamp } from '../../core/time.ts';
import { SessionCount, Talks } from '../../engine/step/agent/conversation.ts';
import type { BuiltInWork, WorkLane } from '../../engine/step/contract.ts';
import type { Done } from '../../engine/step/outcome.ts';
import type { Place } from '../../engine/step/workspace.ts';
import type { ClaimRequest } from '../../store/claims.ts';
import { type Dispatch, dispatcher, inputOf, type Self, toOutput, waitsToDispatch } from '../contract.ts';
import { dispatchEnd, dispatchPrompt } from '../prompts.ts';
import { candidatesOf, pickTask } from '../tasks/pick.ts';
import { type Look, look, takersOf } from '../tasks/read.ts';
import { answerOf } from './ask-agent.ts';

/** A task, and why it is that one; or that there is none. */
type Choice =
  | {
      readonly kind: 'task';
      readonly id: string;
      readonly agent: string;
      readonly args: Readonly<Record<string, string>>;
      readonly why: string;
    }
  | { readonly kind: 'nothing'; readonly why: string };

/**
 * Picks a task and claims it. Nobody else picks meanwhile, so that each sees what the one before has taken; the claim
 * itself would hold without it.
 */
export const dispatchStep =
  (self: Self): BuiltInWork =>
  async (lane, place) => {
    const { effects, runId, lease } = lane;
    const key = `${runId}:${dispatcher}`;
    const places = effects.agents.get(dispatcher)?.maxConcurrency ?? 1;
    await self.show({ state: 'dispatching', runId, note: waitsToDispatch });
    try {
      await effects.takeSlot({ key, agent: dispatcher, places, lease });
      return await dispatch(self, lane, place);
    } finally {
      await effects.releaseSlot({ key, agent: dispatcher });
    }
  };

async function dispatch(self: Self, lane: WorkLane, place: Place): Promise<Done> {
  await self.show({ state: 'dispatching', runId: lane.runId });
  for (;;) {
    const seen = await look(self.effects, self.rules, lane.effects);
    const { situation } = seen;
    const mine = situation.claims.find(({ runId, state }) => runId === lane.runId && state === 'held');
    const chosen: Choice | Done = mine
      ? { kind: 'task', id: mine.task, ...heldBy(seen, mine.task), args: {} }
      : await choose(self, lane, { seen, place });
    if ('end' in chosen) return chosen;
    if (chosen.kind === 'nothing') return nothing(chosen.why, seen);
    const task = situation.tasks.find(({ id }) => id === chosen.id);
    if (!task) return nothing(`the task ${chosen.id} is gone`, seen);
    const token = situation.claims.find(claim => claim.task === task.id)?.token ?? 0;
    const { id, version, title, body, file } = task;
    const claim = await self.effects.takeClaim(
      await requestOf(self, lane, { task: id, version, seen: token }),
    );
    // Somebody who dispatches by another lock, or a person, was faster: look again.
    if (claim.kind === 'taken') continue;
    const { agent, args, why } = chosen;
    await lane.record({
      type: 'transition.taken',
      data: { from: dispatcher, to: agent, args: { task: id, ...args }, why },
    });
    return done({
      task: { id, title, body, version, ...(file === undefined ? {} : { file }) },
      agent,
      args,
      why,
      token: claim.claim.token,
    });
  }
}

async function requestOf(
  { effects }: Self,
  { runId, lease, scope }: WorkLane,
  claim: Pick<ClaimRequest, 'task' | 'version' | 'seen'>,
): Promise<ClaimRequest> {
  const at = toTimestamp(await effects.now());
  return { ...claim, runId, by: inputOf(scope).worker, at, fence: { runId, lease } };
}

/** What had been claimed before a crash is gone on with. */
function heldBy({ situation }: Look, task: string): { readonly agent: string; readonly why: string } {
  const free = { ...situation, claims: situation.claims.filter(claim => claim.task !== task) };
  const candidate = candidatesOf(free).find(each => each.task.id === task);
  return {
    agent: candidate?.agent.name ?? situation.defaultAgent ?? 'claude',
    why: 'it had been claimed before',
  };
}

async function choose(
  self: Self,
  lane: WorkLane,
  { seen, place }: { readonly seen: Look; readonly place: Place },
): Promise<Choice | Done> {
  const picked = pickTask(seen.situation);
  if (picked.kind === 'nothing') return picked;
  if (self.rules.dispatch === 'agent') return ask(self, lane, { seen, place });
  const { task, agent, why } = picked;
  return { kind: 'task', id: task.id, agent, args: {}, why };
}

/** Lets an agent pick. The lock is held already, so its own places are not asked for again. */
async function ask(
  self: Self,
  lane: WorkLane,
  { seen, place }: { readonly seen: Look; readonly place: Place },
): Promise<Choice | Done> {
  const { agents } = lane.effects;
  const tasks = candidatesOf(seen.situation);
  const unlimited = new Map(agents);
  const agent = agents.get(dispatcher);
  if (agent) unlimited.set(dispatcher, { ...agent, maxConcurrency: undefined });
  const { incarnation } = inputOf(lane.scope);
  const workers = await self.effects.otherWorkers(incarnation);
  const cards = takersOf(agents);
  const talks = new Talks(
    { ...lane, effects: { ...lane.effects, agents: unlimited } },
    {
      place,
      count: new SessionCount(lane),
      agent: dispatcher,
      prompt: dispatchPrompt({ tasks, workers, agents: cards }),
    },
  );
  const answer = await answerOf(talks, {
    first: talks.first(),
    corrections: self.rules.corrections,
    how: dispatchEnd({ tasks, agents: cards }),
    rules: { agents: cards, role: 'dispatch', tasks: tasks.map(({ task }) => task.id) },
  });
  if (answer.kind === 'ended') return { end: answer.end, summary: '' };
  const { next } = answer;
  if (next.kind !== 'agent') return { kind: 'nothing', why: `${dispatcher} wants to wait` };
  const { task: id = '', why = `${dispatcher} chose it`, ...args } = next.args;
  return { kind: 'task', id, agent: next.agent, args, why };
}

const nothing = (why: string, { seen }: Look): Done => done({ task: null, why, seen });

const done = (dispatch: Dispatch): Done => ({
  end: { kind: 'completed', output: toOutput(dispatch) },
  summary: '',
});
