import { nearest } from '../../core/suggest.ts';
import { type Claim, isHeld } from '../../store/claims.ts';
import { byText, type Task, type TaskList } from './task.ts';

export type StandingWord =
  | 'ready'
  | 'held'
  | 'waiting'
  | 'draft'
  | 'review'
  | 'blocked'
  | 'delivered'
  | 'parked'
  | 'failed'
  | 'invalid'
  | 'done'
  | 'landed';

/** How a task stands: a word, and the word with the reason, such as `held by anna` or `failed: the tests fail`. */
export type Standing =
  | { readonly word: 'ready'; readonly text: string; readonly agent: ChosenAgent }
  | { readonly word: Exclude<StandingWord, 'ready'>; readonly text: string };

/** Who takes a task, and who said so. */
export interface ChosenAgent {
  readonly name: string;
  readonly by: 'task' | 'same-name' | 'default';
}

/** All that decides how tasks stand. A TaskList may be spread into it. */
export interface Situation extends Pick<TaskList, 'tasks'> {
  readonly problems?: TaskList['problems'] | undefined;
  readonly claims: readonly Claim[];
  /** The names of those who can take a task. */
  readonly agents: Iterable<string>;
  /** Who takes tasks that name nobody. */
  readonly defaultAgent?: string | undefined;
}

export interface TaskStanding {
  readonly id: string;
  /** Absent if it could not be understood. */
  readonly task?: Task | undefined;
  readonly claim?: Claim | undefined;
  readonly standing: Standing;
}

/** How every task stands, by name; also of those that could not be understood. */
export function standingsOf(situation: Situation): readonly TaskStanding[] {
  const view = viewOf(situation);
  const understood = situation.tasks.map(task => ({
    id: task.id,
    task,
    claim: view.claims.get(task.id),
    standing: standingIn(view, task),
  }));
  const invalid = new Map<string, TaskStanding>();
  for (const { task: id, message } of situation.problems ?? []) {
    if (id === undefined || view.tasks.has(id) || invalid.has(id)) continue;
    const standing = { word: 'invalid', text: `invalid: ${message}` } as const;
    invalid.set(id, { id, claim: view.claims.get(id), standing });
  }
  return [...understood, ...invalid.values()].toSorted((a, b) => byText(a.id, b.id));
}

/** How one task stands among the others. */
export const standingOf = (task: Task, situation: Situation): Standing => standingIn(viewOf(situation), task);

interface View {
  readonly tasks: ReadonlyMap<string, Task>;
  /** Those that could not be understood. */
  readonly broken: ReadonlySet<string>;
  readonly claims: ReadonlyMap<string, Claim>;
  readonly agents: ReadonlySet<string>;
  readonly defaultAgent: string | undefined;
}

const viewOf = ({ tasks, problems = [], claims, agents, defaultAgent }: Situation): View => ({
  tasks: new Map(tasks.map(task => [task.id, task])),
  broken: new Set(problems.flatMap(({ task }) => task ?? [])),
  claims: new Map(claims.map(claim => [claim.task, claim])),
  agents: new Set(agents),
  defaultAgent,
});

function standingIn(view: View, task: Task): Standing {
  const own = ownStanding(task, view.claims.get(task.id));
  if (own) return own;
  const open = [...new Set(task.needs)].filter(need => !isDone(view, need));
  if (open.length > 0) {
    const text = `waiting for ${joined(open.map(need => `\`${need}\`${whyOpen(view, need)}`))}`;
    return { word: 'waiting', text };
  }
  const agent = agentFor(view, task);
  return typeof agent === 'string'
    ? { word: 'invalid', text: `invalid: ${agent}` }
    : { word: 'ready', text: 'ready', agent };
}

/** As far as it has nothing to do with other tasks or with agents; `undefined` if nobody has anything against it. */
function ownStanding(task: Task, claim: Claim | undefined): Exclude<Standing, { word: 'ready' }> | undefined {
  if (claim && isHeld(claim)) return { word: 'held', text: `held by ${claim.by}` };
  const isSame = claim?.version === task.version;
  if (claim?.state === 'landed' && (isSame || task.state === 'done')) {
    return { word: 'landed', text: claim.commit ? `landed as ${claim.commit.slice(0, 10)}` : 'landed' };
  }
  if (task.state !== 'ready') return { word: task.state, text: task.state };
  // Whoever changes the text of a task wants it to be tried again.
  return claim && isSame ? settledStanding(claim) : undefined;
}

function settledStanding({ state, reason, branch }: Claim): Exclude<Standing, { word: 'ready' }> | undefined {
  const where = branch ? ` on ${branch}` : '';
  const why = reason ? `: ${reason}` : '';
  switch (state) {
    case 'delivered':
      return { word: state, text: `delivered${where}` };
    case 'parked':
    case 'failed':
      return { word: state, text: `${state}${where}${why}` };
    // What is called held and gets here belongs to a run that has ended.
    case 'held':
    case 'released':
    case 'landed':
      return undefined;
  }
}

/** A task that landed and was written anew is open again; one that landed and is gone is not. */
function isDone({ tasks, claims }: View, need: string): boolean {
  const task = tasks.get(need);
  const claim = claims.get(need);
  if (task?.state === 'done') return true;
  return claim?.state === 'landed' && (task === undefined || task.version === claim.version);
}

function whyOpen({ tasks, broken, claims }: View, need: string): string {
  const task = tasks.get(need);
  const claim = claims.get(need);
  if (!task) return broken.has(need) ? ' (invalid)' : claim ? ' (gone)' : ' (no such task)';
  const own = ownStanding(task, claim);
  return own ? ` (${own.word})` : '';
}

/** A text says why there is none. */
function agentFor({ agents, defaultAgent }: View, task: Task): ChosenAgent | string {
  if (task.agent !== undefined) {
    return agents.has(task.agent) ? { name: task.agent, by: 'task' } : noAgent(task.agent, agents);
  }
  if (agents.has(task.id)) return { name: task.id, by: 'same-name' };
  if (defaultAgent === undefined) return 'it names no agent, and there is none for such tasks';
  return agents.has(defaultAgent) ? { name: defaultAgent, by: 'default' } : noAgent(defaultAgent, agents);
}

function noAgent(name: string, agents: ReadonlySet<string>): string {
  const guess = nearest(name, agents);
  return `there is no agent \`${name}\`${guess === undefined ? '' : `; did you mean \`${guess}\`?`}`;
}

const joined = (words: readonly string[]): string =>
  words.length < 2 ? words.join('') : `${words.slice(0, -1).join(', ')} and ${words.at(-1)}`;
