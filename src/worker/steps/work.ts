import type { ErrorData } from '../../core/errors.ts';
import { SessionCount, Talks } from '../../engine/step/agent/conversation.ts';
import { firstLine } from '../../engine/step/commands.ts';
import type { BuiltInWork, Transition, WorkLane } from '../../engine/step/contract.ts';
import { type Done, failedWith } from '../../engine/step/outcome.ts';
import type { Place } from '../../engine/step/workspace.ts';
import { type DispatchedTask, dispatchedOf, type Self } from '../contract.ts';
import type { Next } from '../handoff/handoff.ts';
import { howToEnd, workPrompt } from '../prompts.ts';
import { colleaguesOf, takersOf } from '../tasks/read.ts';
import { answerOf } from './ask-agent.ts';

/** Whose turn it is, and with what. */
interface Turn {
  readonly agent: string;
  readonly args: Readonly<Record<string, string>>;
  readonly from?: { readonly agent: string; readonly text: string } | undefined;
}

/** Agents take turns at a task in one workspace, each naming the next, until one says that it may land. */
export const workStep =
  (self: Self): BuiltInWork =>
  async (lane, place) => {
    const { task, agent, args } = dispatchedOf(lane.scope);
    const { transitions } = lane.known;
    const own = { ...lane, unit: { ...lane.unit, task: task.id } };
    const count = new SessionCount(lane);
    let turn: Turn | undefined = turnAfter(transitions, { agent, args });
    for (let turns = transitions.length; turn; turns++) {
      if (turns >= self.rules.maxAgents) return failed(tooMany(self.rules.maxAgents));
      await self.show({ state: 'working', runId: lane.runId, task: task.id, agent: turn.agent });
      const talk = { task, turn, place, count, isFirst: turns === transitions.length };
      const answer = await takeTurn(self, own, talk);
      if (answer.kind === 'ended') return { end: answer.end, summary: '' };
      const { next, text } = answer;
      await lane.record({ type: 'transition.taken', data: transitionOf(turn.agent, next) });
      if (next.kind === 'give-up') return failed(givenUp(turn.agent, next.reason));
      turn = next.kind === 'agent' ? { ...next, from: { agent: turn.agent, text } } : undefined;
    }
    if (task.file !== undefined)
      await self.effects.markTask({ folder: place.folder, file: task.file, state: 'done' });
    return {
      end: { kind: 'completed', output: { task: task.id } },
      summary: task.title,
      message: messageOf(task),
    };
  };

interface Talk {
  readonly task: DispatchedTask;
  readonly turn: Turn;
  readonly place: Place;
  readonly count: SessionCount;
  /** A crash may have cut it off. */
  readonly isFirst: boolean;
}

function takeTurn(self: Self, lane: WorkLane, { task, turn, place, count, isFirst }: Talk) {
  const { agents } = lane.effects;
  const others = colleaguesOf(agents, turn.agent);
  const talks = new Talks(lane, {
    place,
    count,
    agent: turn.agent,
    prompt: workPrompt({ task, others, ...turn }),
    env: { REPRISE_TASK: task.id },
  });
  return answerOf(talks, {
    first: isFirst ? talks.first() : talks.start(),
    corrections: self.rules.corrections,
    how: howToEnd(others),
    rules: { agents: takersOf(agents), role: 'worker' },
  });
}

/** Where a chain of agents stands; `undefined` when it has come to its end. */
function turnAfter(transitions: readonly Transition[], first: Turn): Turn | undefined {
  const last = transitions.at(-1);
  if (!last) return first;
  return last.to === 'land'
    ? undefined
    : { agent: last.to, args: last.args ?? {}, from: { agent: last.from, text: '' } };
}

function transitionOf(from: string, next: Next): Transition {
  if (next.kind === 'agent') {
    const args = Object.keys(next.args).length > 0 ? { args: next.args } : {};
    return { from, to: next.agent, ...args };
  }
  return { from, to: next.kind, ...(next.kind === 'give-up' ? { why: next.reason } : {}) };
}

/** What was not committed by the agents themselves is committed with this. */
const messageOf = ({ id, title }: DispatchedTask): string => `${firstLine(title) || id}\n\nTask: ${id}\n`;

const failed = (error: ErrorData): Done => ({ end: failedWith(error), summary: error.message });

const tooMany = (maxAgents: number): ErrorData => ({
  code: 'NO_TRANSITION',
  message: `${maxAgents} agents have taken turns, and none of them came to an end`,
  hint: 'they may be handing the task to each other: see what they said with reprise logs; or raise `workers.max_agents`',
});

const givenUp = (agent: string, reason: string): ErrorData => ({
  code: 'GIVEN_UP',
  message: `${agent} gave the task up: ${reason}`,
  hint: 'change the text of the task, or give it back as it is: reprise tasks release',
});
