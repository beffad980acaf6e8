import { nearest } from '../core/suggest.ts';
import type { AgentCard, AgentCards } from './agent-card.ts';
import type { Next } from './next.ts';

export interface NextRules {
  /** Whom may be handed over to. */
  readonly agents: AgentCards;
  readonly role: 'worker' | 'dispatch';
  /** Of a dispatcher: the names of the tasks that may be picked. */
  readonly tasks?: Iterable<string> | undefined;
}

/** What is wrong with what an agent wants, in sentences that it can mend it by; `undefined` if nothing is. */
export function checkNext(next: Next, { agents, role, tasks = [] }: NextRules): string | undefined {
  switch (next.kind) {
    case 'land':
    case 'give-up':
      return role === 'worker'
        ? undefined
        : `A dispatcher cannot end with \`${next.kind}\`: it names an agent and a task, or says \`sleep\`.`;
    case 'sleep':
      return role === 'dispatch'
        ? undefined
        : 'Only a dispatcher can end with `sleep`: hand over to an agent, or end with `land` or `give-up`.';
    case 'agent': {
      const { task, ...args } = next.args;
      const card = agents.get(next.agent);
      const found = [
        ...(card
          ? argumentProblems(next.agent, card, role === 'dispatch' ? args : next.args)
          : [unknownAgent(next.agent, agents)]),
        ...(role === 'dispatch' ? taskProblems(task, [...tasks]) : []),
      ];
      return found.length === 0 ? undefined : found.join(' ');
    }
  }
}

function unknownAgent(name: string, agents: AgentCards): string {
  const guess = nearest(name, agents.keys());
  return guess === undefined
    ? `There is no agent \`${name}\`; ${oneOf('the agents are', agents.keys(), 'there is nobody to hand over to')}.`
    : `There is no agent \`${name}\`; did you mean \`${guess}\`?`;
}

function argumentProblems(
  agent: string,
  { inputs }: AgentCard,
  args: Readonly<Record<string, string>>,
): readonly string[] {
  if (inputs === undefined) return [];
  const names = Object.keys(inputs);
  const missing = names.filter(
    name => inputs[name]?.required && (!Object.hasOwn(args, name) || args[name]?.trim() === ''),
  );
  const unknown = Object.keys(args).filter(name => !Object.hasOwn(inputs, name));
  return [
    ...missing.map(name => `The agent \`${agent}\` needs the argument \`${name}\`.`),
    ...unknown.map(name => {
      const guess = nearest(name, names);
      const hint =
        guess === undefined ? oneOf('it takes', names, 'it takes none') : `did you mean \`${guess}\``;
      return `The agent \`${agent}\` has no argument \`${name}\`${guess === undefined ? `: ${hint}.` : `; ${hint}?`}`;
    }),
  ];
}

function taskProblems(task: string | undefined, tasks: readonly string[]): readonly string[] {
  const offer = oneOf('the tasks that may be picked are', tasks, 'no task may be picked: say `sleep`');
  if (!task) return [`The argument \`task\` is missing; ${offer}.`];
  if (tasks.includes(task)) return [];
  const guess = nearest(task, tasks);
  return [
    guess === undefined
      ? `The task \`${task}\` cannot be picked; ${offer}.`
      : `The task \`${task}\` cannot be picked; did you mean \`${guess}\`?`,
  ];
}

function oneOf(intro: string, names: Iterable<string>, none: string): string {
  const quoted = [...names].map(name => `\`${name}\``);
  return quoted.length === 0 ? none : `${intro} ${quoted.join(', ')}`;
}
