import type { AgentInput } from '../../agents/index.ts';
import { isJsonObject, type Json, nearest } from '../../core/index.ts';
import { readTag, shown, type TagContent, textsOf } from './tag-content.ts';

/** Action that an agent requests at the end of its turn. */
export type NextAction =
  /** Another agent continues the task. */
  | { readonly kind: 'agent'; readonly agent: string; readonly args: Readonly<Record<string, string>> }
  /** The work is done and can land. */
  | { readonly kind: 'land' }
  /** The task cannot be done. */
  | { readonly kind: 'give-up'; readonly reason: string }
  /** No task should be started now. Dispatcher only. */
  | { readonly kind: 'sleep' };

type ParsedNext =
  | { readonly kind: 'next'; readonly next: NextAction }
  /** A sentence that tells the agent what to correct. */
  | { readonly kind: 'problem'; readonly message: string };

/** Description of an agent, for the agents that may hand over to it. */
export interface AgentCard {
  readonly description?: string | undefined;
  /** Arguments that it takes. If undefined, any argument is accepted. */
  readonly inputs?: Readonly<Record<string, AgentInput>> | undefined;
}

export type AgentCards = ReadonlyMap<string, AgentCard>;

interface AgentReply {
  /** Last message of the agent. */
  readonly text: string;
  /** Structured output that came with the message. */
  readonly structured?: Json | undefined;
}

/** Reads the next action from the structured output, or else from the `<next>` tag that ends the text. Never throws. */
export function parseNext({ text, structured }: AgentReply): ParsedNext {
  const given = structuredNext(structured);
  if (given !== undefined) return interpret(given, 'The structured answer');
  const tag = readTag(text);
  return tag.kind === 'problem' ? tag : interpret(tag.content, 'The `<next>` tag');
}

const problem = (message: string): ParsedNext => ({ kind: 'problem', message });

function structuredNext(structured: Json | undefined): TagContent | undefined {
  if (!isJsonObject(structured)) return undefined;
  const next = Object.hasOwn(structured, 'next') ? structured['next'] : undefined;
  if (typeof next === 'string') return next.trim();
  if (isJsonObject(next)) return textsOf(next);
  return Object.hasOwn(structured, 'agent') ? textsOf(structured) : undefined;
}

const isName = (word: string): boolean => /^[\p{L}\p{N}_.-]+$/u.test(word);

function interpret(content: TagContent, where: string): ParsedNext {
  const { agent, ...args } = typeof content === 'string' ? { agent: content } : content;
  if (typeof content === 'string' || agent !== undefined) {
    if (agent === undefined || !isName(agent))
      return problem(
        `${where} must name one agent, or be \`land\` or \`give-up\`, not ${shown(agent ?? '')}.`,
      );
    return next(reserved(agent, args['reason']) ?? { kind: 'agent', agent, args });
  }
  const names = Object.keys(args).map(name => `\`${name}\``);
  if (names.length === 1 && args['give-up'] !== undefined)
    return next({ kind: 'give-up', reason: args['give-up'] || noReason });
  const found = names.length === 0 ? '' : `; found ${names.join(', ')}`;
  return problem(`${where} must name an \`agent\`, or be \`land\` or \`give-up\`${found}.`);
}

const next = (wanted: NextAction): ParsedNext => ({ kind: 'next', next: wanted });

const noReason = 'no reason was given';

/** Action of a reserved word; `undefined` for any other word. */
function reserved(word: string, reason = ''): NextAction | undefined {
  switch (word) {
    case 'land':
    case 'sleep':
      return { kind: word };
    case 'give-up':
      return { kind: word, reason: reason || noReason };
    default:
      return undefined;
  }
}

export interface NextRules {
  /** Agents that may be handed over to. */
  readonly agents: AgentCards;
  readonly role: 'worker' | 'dispatch';
  /** Ids of the ready tasks. Dispatcher only. */
  readonly tasks?: Iterable<string> | undefined;
}

/** Returns sentences that tell the agent what to correct, or `undefined` if the action is valid. */
export function checkNext(next: NextAction, { agents, role, tasks = [] }: NextRules): string | undefined {
  switch (next.kind) {
    case 'land':
    case 'give-up':
      return role === 'worker'
        ? undefined
        : `A dispatcher cannot end with \`${next.kind}\`: name an agent and a task, or end with \`sleep\`.`;
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
    ? `There is no agent \`${name}\`; ${oneOf('the agents are', agents.keys(), 'there are no agents to hand over to')}.`
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
  const offer = oneOf('the ready tasks are', tasks, 'no task is ready: end with `sleep`');
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
