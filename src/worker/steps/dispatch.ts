import type { Denial } from '../../agents/index.ts';
import { type ErrorData, toTimestamp } from '../../core/index.ts';
import type { StepEnd } from '../../engine/index.ts';
import {
  type AgentMessage,
  Conversation,
  SessionCount,
  type SessionEnd,
} from '../../engine/step/agent/index.ts';
import {
  type BuiltInWork,
  failedWith,
  type WorkLane,
  type WorkLocation,
  type WorkOutcome,
} from '../../engine/step/index.ts';
import type { ClaimRequest } from '../../store/index.ts';
import {
  type Dispatch,
  dispatcher,
  inputOf,
  toOutput,
  type WorkerHandle,
  waitsToDispatch,
} from '../contract.ts';
import { checkNext, type NextAction, type NextRules, parseNext } from '../handoff/handoff.ts';
import { correctionPrompt, dispatchEnd, dispatchPrompt } from '../prompts.ts';
import { candidatesOf, pickTask } from '../tasks/pick.ts';
import { readTasks, type TaskReading, takersOf } from '../tasks/read.ts';

export type AgentAnswer =
  | {
      readonly kind: 'next';
      readonly next: NextAction;
      readonly text: string;
      /** Actions that its sessions were denied. */
      readonly denials: readonly Denial[];
    }
  /** The agent gave no valid answer, so the step ends. */
  | { readonly kind: 'ended'; readonly end: StepEnd };

interface AgentQuestion {
  readonly first: AgentMessage;
  /** Number of times that the agent may correct an invalid answer. */
  readonly corrections: number;
  readonly rules: NextRules;
}

/** Talks to an agent until it ends with a valid `<next>` instruction or has used up its corrections. */
export async function askUntilValid(
  conversation: Conversation,
  { first, corrections, rules }: AgentQuestion,
): Promise<AgentAnswer> {
  let message = first;
  const denials: Denial[] = [];
  for (let left = corrections - (first.earlier ?? 0); ; left--) {
    const end = await conversation.send(message);
    denials.push(...end.denials);
    if (end.kind === 'paused') return { kind: 'ended', end: end.end };
    if (end.kind === 'failed') return { kind: 'ended', end: failedWith(end.error) };
    const parsed = parseNext(toAnswer(end));
    const problem = parsed.kind === 'problem' ? parsed.message : checkNext(parsed.next, rules);
    if (parsed.kind === 'next' && problem === undefined)
      return { kind: 'next', next: parsed.next, text: end.text, denials };
    if (left <= 0) return { kind: 'ended', end: failedWith(noTransition(problem ?? '', corrections)) };
    await conversation.reworks(noTransition(problem ?? '', 0), corrections - left + 1);
    message = conversation.after(end, correctionPrompt(problem ?? ''));
  }
}

const toAnswer = ({ text, structured }: Extract<SessionEnd, { kind: 'ok' }>) => ({
  text,
  ...(structured === undefined ? {} : { structured }),
});

const afterCorrections = (count: number): string =>
  count === 0 ? '' : ` after ${count} ${count === 1 ? 'correction' : 'corrections'}`;

const noTransition = (problem: string, corrections: number): ErrorData => ({
  code: 'NO_TRANSITION',
  message: `the agent did not end with a valid \`<next>\` instruction${afterCorrections(corrections)}: ${problem}`,
  hint: 'read its messages: reprise logs; explain `<next>` in its prompt, or raise `workers.corrections`',
});

/** The chosen task with the reason for the choice, or the reason why there is none. */
type DispatchChoice =
  | {
      readonly kind: 'task';
      readonly id: string;
      readonly agent: string;
      readonly args: Readonly<Record<string, string>>;
      readonly why: string;
    }
  | { readonly kind: 'nothing'; readonly why: string };

const anotherPicks = 'waiting for another worker to pick a task';

/**
 * Picks a task and claims it under a lock, so each worker sees the claims of the one before. The lock only avoids
 * wasted picks; the claim is exclusive without it, so no worker waits for a stalled holder.
 */
export const dispatchStep =
  (worker: WorkerHandle): BuiltInWork =>
  async (lane, location) => {
    const { effects, runId, lease, unit } = lane;
    const key = `${runId}:${dispatcher}`;
    const places = effects.agents.get(dispatcher)?.maxConcurrency ?? 1;
    await worker.show({ state: 'dispatching', runId, note: waitsToDispatch });
    try {
      const wait = { places, lease, unit, why: anotherPicks, skipsStalled: true };
      await effects.takeSlot({ key, agent: dispatcher, ...wait });
      return await dispatch(worker, lane, location);
    } finally {
      await effects.releaseSlot({ key, agent: dispatcher });
    }
  };

async function dispatch(worker: WorkerHandle, lane: WorkLane, location: WorkLocation): Promise<WorkOutcome> {
  await worker.show({ state: 'dispatching', runId: lane.runId });
  const count = new SessionCount(lane);
  for (;;) {
    const seen = await readTasks(worker.effects, worker.rules, lane.effects);
    const { board } = seen;
    const mine = board.claims.find(({ runId, state }) => runId === lane.runId && state === 'held');
    const chosen: DispatchChoice | WorkOutcome = mine
      ? { kind: 'task', id: mine.task, ...heldBy(seen, mine.task), args: {} }
      : await choose(worker, lane, { seen, location, count });
    if ('end' in chosen) return chosen;
    if (chosen.kind === 'nothing') return nothing(chosen.why, seen);
    const task = board.tasks.find(({ id }) => id === chosen.id);
    if (!task) return nothing(`task ${chosen.id} no longer exists`, seen);
    const token = board.claims.find(claim => claim.task === task.id)?.token ?? 0;
    const { id, version, title, body, file } = task;
    const claim = await worker.effects.takeClaim(
      await requestOf(worker, lane, { task: id, version, seen: token }),
    );
    // A person, or a worker with another lock, claimed the task first: read the tasks again.
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
  { effects }: WorkerHandle,
  { runId, lease, scope }: WorkLane,
  claim: Pick<ClaimRequest, 'task' | 'version' | 'seen'>,
): Promise<ClaimRequest> {
  const at = toTimestamp(await effects.now());
  return { ...claim, runId, by: inputOf(scope).worker, at, fence: { runId, lease } };
}

/** Resumes a task that this run claimed before a crash. */
function heldBy({ board }: TaskReading, task: string): { readonly agent: string; readonly why: string } {
  const free = { ...board, claims: board.claims.filter(claim => claim.task !== task) };
  const candidate = candidatesOf(free).find(each => each.task.id === task);
  return {
    agent: candidate?.agent.name ?? board.defaultAgent ?? 'claude',
    why: 'already claimed by this run',
  };
}

async function choose(
  worker: WorkerHandle,
  lane: WorkLane,
  choice: ChoiceContext,
): Promise<DispatchChoice | WorkOutcome> {
  const { seen } = choice;
  const picked = pickTask(seen.board);
  if (picked.kind === 'nothing') return picked;
  if (worker.rules.dispatch === 'agent') return ask(worker, lane, choice);
  const { task, agent, why } = picked;
  return { kind: 'task', id: task.id, agent, args: {}, why };
}

interface ChoiceContext {
  readonly seen: TaskReading;
  readonly location: WorkLocation;
  /** Sessions of the dispatcher, shared by all its choices. */
  readonly count: SessionCount;
}

/** Lets an agent pick. The dispatcher's slot is the lock and already held, so the session must not wait for one. */
async function ask(
  worker: WorkerHandle,
  lane: WorkLane,
  { seen, location, count }: ChoiceContext,
): Promise<DispatchChoice | WorkOutcome> {
  const { agents } = lane.effects;
  const tasks = candidatesOf(seen.board);
  const unlimited = new Map(agents);
  const agent = agents.get(dispatcher);
  if (agent) unlimited.set(dispatcher, { ...agent, maxConcurrency: undefined });
  const { incarnation } = inputOf(lane.scope);
  const workers = await worker.effects.otherWorkers(incarnation);
  const cards = takersOf(agents);
  const conversation = new Conversation(
    { ...lane, effects: { ...lane.effects, agents: unlimited } },
    {
      location,
      count,
      agent: dispatcher,
      prompt: dispatchPrompt({ tasks, workers, agents: cards }),
      ending: dispatchEnd({ tasks, agents: cards }),
    },
  );
  const answer = await askUntilValid(conversation, {
    first: conversation.first(),
    corrections: worker.rules.corrections,
    rules: { agents: cards, role: 'dispatch', tasks: tasks.map(({ task }) => task.id) },
  });
  if (answer.kind === 'ended') return { end: answer.end, summary: '' };
  const { next } = answer;
  if (next.kind !== 'agent') return { kind: 'nothing', why: `${dispatcher} chose to wait` };
  const { task: id = '', why = `${dispatcher} chose it`, ...args } = next.args;
  return { kind: 'task', id, agent: next.agent, args, why };
}

const nothing = (why: string, { seen }: TaskReading): WorkOutcome => done({ task: null, why, seen });

const done = (dispatch: Dispatch): WorkOutcome => ({
  end: { kind: 'completed', output: toOutput(dispatch) },
  summary: '',
});
