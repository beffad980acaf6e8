import { type Denial, permissionDenied } from '../../agents/index.ts';
import type { ErrorData } from '../../core/index.ts';
import { Conversation, SessionCount } from '../../engine/step/agent/index.ts';
import {
  type BuiltInWork,
  failedWith,
  firstLine,
  type Transition,
  type WorkLane,
  type WorkLocation,
  type WorkOutcome,
} from '../../engine/step/index.ts';
import { type DispatchedTask, dispatchedOf, type WorkerHandle } from '../contract.ts';
import type { NextAction } from '../handoff/handoff.ts';
import { howToEnd, workPrompt } from '../prompts.ts';
import { colleaguesOf, takersOf } from '../tasks/read.ts';
import { askUntilValid } from './dispatch.ts';

/** Agent whose turn it is, with its arguments and the message of the agent before. */
interface TaskTurn {
  readonly agent: string;
  readonly args: Readonly<Record<string, string>>;
  readonly from?: { readonly agent: string; readonly text: string } | undefined;
}

/** Agents take turns in one workspace, each naming the next one, until one of them ends with `land`. */
export const workStep =
  (worker: WorkerHandle): BuiltInWork =>
  async (lane, location) => {
    const { task, agent, args } = dispatchedOf(lane.scope);
    const { transitions } = lane.known;
    const own = { ...lane, unit: { ...lane.unit, task: task.id } };
    const count = new SessionCount(lane);
    const denials: Denial[] = [];
    let turn: TaskTurn | undefined = turnAfter(transitions, { agent, args });
    for (let turns = transitions.length; turn; turns++) {
      if (turns >= worker.rules.maxAgents) return failed(tooMany(worker.rules.maxAgents));
      await worker.show({ state: 'working', runId: lane.runId, task: task.id, agent: turn.agent });
      const conversation = { task, turn, location, count, isFirst: turns === transitions.length };
      const answer = await takeTurn(worker, own, conversation);
      if (answer.kind === 'ended') return { end: answer.end, summary: '' };
      const { next, text } = answer;
      denials.push(...answer.denials);
      await lane.record({ type: 'transition.taken', data: transitionOf(turn.agent, next) });
      if (next.kind === 'give-up') return failed(givenUp(turn.agent, next.reason));
      turn = next.kind === 'agent' ? { ...next, from: { agent: turn.agent, text } } : undefined;
    }
    const denial = denials.findLast(each => each.lineToAdd !== undefined) ?? denials.at(-1);
    if (denial && (await isUnchanged(lane, location))) return failed(permissionDenied(denial, nothingDone));
    if (task.file !== undefined)
      await worker.effects.markTask({
        ...{ folder: location.folder, file: task.file, state: 'done' },
        fence: { runId: lane.runId, lease: lane.lease },
      });
    return {
      end: { kind: 'completed', output: { task: task.id } },
      summary: task.title,
      message: messageOf(task),
    };
  };

interface TaskConversation {
  readonly task: DispatchedTask;
  readonly turn: TaskTurn;
  readonly location: WorkLocation;
  readonly count: SessionCount;
  /** First turn of this process. A crash may have interrupted its session, which is then resumed. */
  readonly isFirst: boolean;
}

function takeTurn(
  worker: WorkerHandle,
  lane: WorkLane,
  { task, turn, location, count, isFirst }: TaskConversation,
) {
  const { agents } = lane.effects;
  const others = colleaguesOf(agents, turn.agent);
  const conversation = new Conversation(lane, {
    location,
    count,
    agent: turn.agent,
    prompt: workPrompt({ task, ...turn }),
    ending: howToEnd(others, turn.agent),
    env: { REPRISE_TASK: task.id },
  });
  return askUntilValid(conversation, {
    first: isFirst ? conversation.first() : conversation.start(),
    corrections: worker.rules.corrections,
    rules: { agents: takersOf(agents), role: 'worker' },
  });
}

/** Turn that follows the recorded transitions; `undefined` after `land`. */
function turnAfter(transitions: readonly Transition[], first: TaskTurn): TaskTurn | undefined {
  const last = transitions.at(-1);
  if (!last) return first;
  return last.to === 'land'
    ? undefined
    : { agent: last.to, args: last.args ?? {}, from: { agent: last.from, text: '' } };
}

function transitionOf(from: string, next: NextAction): Transition {
  if (next.kind === 'agent') {
    const args = Object.keys(next.args).length > 0 ? { args: next.args } : {};
    return { from, to: next.agent, ...args };
  }
  return { from, to: next.kind, ...(next.kind === 'give-up' ? { why: next.reason } : {}) };
}

/** Whether the agents have changed nothing in the workspace. */
async function isUnchanged({ effects }: WorkLane, { workspace }: WorkLocation): Promise<boolean> {
  if (!workspace) return false;
  const { path, base } = workspace;
  return (await effects.patchOf({ path, base, limit: 1 })) === '';
}

const nothingDone = 'The agent ended with `land`, but it has changed nothing.';

/** Commit message for changes that the agents did not commit themselves. */
const messageOf = ({ id, title }: DispatchedTask): string => `${firstLine(title) || id}\n\nTask: ${id}\n`;

const failed = (error: ErrorData): WorkOutcome => ({ end: failedWith(error), summary: error.message });

const tooMany = (maxAgents: number): ErrorData => ({
  code: 'NO_TRANSITION',
  message: `the task is not finished after ${maxAgents} agent turns`,
  hint: 'the agents may be handing the task back and forth: read their messages with reprise logs, or raise `workers.max_agents`',
});

const givenUp = (agent: string, reason: string): ErrorData => ({
  code: 'GIVEN_UP',
  message: `${agent} gave up: ${reason}`,
  hint: 'change the text of the task, or retry it unchanged: reprise tasks release',
});
