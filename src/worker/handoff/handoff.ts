import type { AgentInput } from '../../agents/index.ts';
import { isJsonObject, type Json, nearest } from '../../core/index.ts';
import { readWords, type Words, wordsOf } from './tag-content.ts';

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

/** Reads the next action from the structured output, or else from the last `<next>` tag of the text. Never throws. */
export function parseNext({ text, structured }: AgentReply): ParsedNext {
  const given = structuredNext(structured);
  if (given !== undefined) return interpret(given, 'The structured answer');
  const content = lastTag(text);
  if (content === undefined) return problem('Your last message has no `<next>` tag.');
  if (content.trim() === '') return problem('The `<next>` tag is empty.');
  const read = readWords(content);
  if (read.kind === 'unreadable')
    return problem(`The \`<next>\` tag cannot be read as YAML: ${firstLine(read.why)}.`);
  return interpret(read.words, 'The `<next>` tag');
}

const problem = (message: string): ParsedNext => ({ kind: 'problem', message });
const firstLine = (text: string): string => text.trim().split('\n', 1)[0] ?? '';

function structuredNext(structured: Json | undefined): Words | undefined {
  if (!isJsonObject(structured)) return undefined;
  const next = Object.hasOwn(structured, 'next') ? structured['next'] : undefined;
  if (typeof next === 'string' || isJsonObject(next)) return wordsOf(next);
  return Object.hasOwn(structured, 'agent') ? wordsOf(structured) : undefined;
}

/** Content of the last tag, which may be unclosed. An opening tag between backticks is only mentioned, and skipped. */
function lastTag(text: string): string | undefined {
  const opening = [...text.matchAll(/(?<!`)<\s*next\s*>|<\s*next\s*>(?!`)/gi)].at(-1);
  if (!opening) return undefined;
  const rest = text.slice(opening.index + opening[0].length);
  return rest.split(/<\s*\/\s*next\s*(?:>|$)/i, 1)[0];
}

type WordFields = Exclude<Words, string>;

function interpret(words: Words, where: string): ParsedNext {
  if (typeof words === 'string') return interpretWord(words, where);
  const fields = unwrapped(words);
  if (typeof fields === 'string') return interpretWord(fields, where);
  const [control, ...others] = controlsOf(fields);
  if (control) {
    if (others.every(({ kind }) => kind === control.kind)) return next(control);
    return problem(`${where} has both \`${control.kind}\` and \`${others.at(-1)?.kind}\`.`);
  }
  const { agent, args } = withAgent(fields);
  if (agent === undefined) {
    const names = Object.keys(fields).map(name => `\`${name}\``);
    const found = names.length === 0 ? '' : `; found ${names.join(', ')}`;
    return problem(`${where} must name an \`agent\`, or be \`land\` or \`give-up\`${found}.`);
  }
  const name = typeof agent === 'string' ? bare(agent) : '';
  if (!isName(name)) return problem(`${where} must name one agent at \`agent\`, not ${shown(agent)}.`);
  return next(plainNext(name, args) ?? { kind: 'agent', agent: name, args });
}

const next = (wanted: NextAction): ParsedNext => ({ kind: 'next', next: wanted });

function interpretWord(text: string, where: string): ParsedNext {
  const word = bare(text);
  const plain = plainNext(word, {});
  if (plain) return next(plain);
  if (isName(word)) return next({ kind: 'agent', agent: word, args: {} });
  return problem(`${where} must contain one word or \`agent: name\`, not ${shown(text)}.`);
}

const isName = (word: string): boolean => /^[\p{L}\p{N}_.-]+$/u.test(word);

function shown(words: Words): string {
  const text = (typeof words === 'string' ? words : JSON.stringify(words)).trim().replace(/\s+/g, ' ');
  if (text === '') return 'nothing';
  return text.length > 60 ? `\`${text.slice(0, 60)}…\`` : `\`${text}\``;
}

/** Strips the quotes, full stops and comments that agents add to a name. */
const bare = (text: string): string =>
  text
    .trim()
    .replace(/\s+#.*$/s, '')
    .replace(/^["'`*]+|["'`*.]+$/g, '')
    .trim();

const plainName = (name: string): string =>
  name.trim().toLowerCase().replace(/[_ ]/g, '-').replace('giveup', 'give-up');

/** Action of a reserved word; `undefined` for any other word. */
function plainNext(word: string, args: Readonly<Record<string, string>>): NextAction | undefined {
  switch (plainName(word)) {
    case 'land':
    case 'done':
      return { kind: 'land' };
    case 'sleep':
      return { kind: 'sleep' };
    case 'give-up':
      return { kind: 'give-up', reason: reasonIn(args) };
    default:
      return undefined;
  }
}

const reasonIn = (args: Readonly<Record<string, string>>): string =>
  args['reason'] || args['why'] || Object.values(args).filter(Boolean).join('\n') || 'no reason was given';

/** Actions of fields such as `land: true` and `give-up: why`, unless an agent is named. */
function controlsOf(fields: WordFields): readonly NextAction[] {
  if (fieldOf(fields, 'agent') !== undefined) return [];
  return Object.entries(fields).flatMap(([name, value]) => {
    if (typeof value !== 'string') return plainNext(name, flattened(value)) ?? [];
    if (/^(false|no)$/i.test(value)) return [];
    const { [name]: _, ...others } = flattened(fields);
    const isOn = value === '' || /^(true|yes)$/i.test(value);
    return plainNext(name, isOn ? others : { reason: value }) ?? [];
  });
}

/** Removes a redundant `{next: ...}` around all fields. */
function unwrapped(fields: WordFields): Words {
  const inner = Object.keys(fields).length === 1 ? fieldOf(fields, 'next') : undefined;
  return inner ?? fields;
}

function withAgent(fields: WordFields): {
  readonly agent: Words | undefined;
  readonly args: Record<string, string>;
} {
  const agent = fieldOf(fields, 'agent');
  const rest = Object.fromEntries(Object.entries(fields).filter(([name]) => plainName(name) !== 'agent'));
  if (agent !== undefined) return { agent, args: flattened(rest) };
  // The short forms `review: { notes: ... }` and `review:`.
  const [only, ...others] = Object.entries(fields);
  if (!only || others.length > 0 || (typeof only[1] === 'string' && only[1] !== ''))
    return { agent, args: {} };
  return { agent: only[0], args: typeof only[1] === 'string' ? {} : flattened(only[1]) };
}

const fieldOf = (fields: WordFields, wanted: string): Words | undefined =>
  Object.entries(fields).find(([name]) => plainName(name) === wanted)?.[1];

const groups = new Set(['args', 'arguments', 'inputs', 'with']);

/** Arguments as strings. A group such as `args:` is replaced by its members. */
function flattened(fields: WordFields): Record<string, string> {
  const entries = Object.entries(fields).flatMap(([name, value]): readonly (readonly [string, Words])[] =>
    groups.has(plainName(name)) && typeof value !== 'string' ? Object.entries(value) : [[name, value]],
  );
  return Object.fromEntries(
    entries.map(([name, value]) => [name, typeof value === 'string' ? value : JSON.stringify(value)]),
  );
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
