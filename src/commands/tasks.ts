import { existsSync } from 'node:fs';
import { RepriseError } from '../core/errors.ts';
import { nearest } from '../core/suggest.ts';
import { toTimestamp } from '../core/time.ts';
import { type ExitCode, exitCodes } from '../project/exit-codes.ts';
import { type CommandIo, lookOf, writeLines } from '../project/host.ts';
import { userName } from '../project/identity.ts';
import { openStore, storeFile } from '../project/open-engine.ts';
import { excludeFromGit, type Project } from '../project/project.ts';
import { openStoredRuns, type StoreMode } from '../project/runs.ts';
import { type Claim, isHeld } from '../store/claims.ts';
import type { EventStore } from '../store/port.ts';
import { describeTask, type TaskFacts } from '../terminal/status/facts.ts';
import { formatTask, formatTaskList, uncommittedTexts } from '../terminal/status/tasks.ts';
import { jsonText } from '../terminal/text.ts';
import { shellWord } from '../terminal/words.ts';
import { safeLine, safeText } from '../view/safe-text.ts';
import type { TaskStanding } from '../worker/tasks/status.ts';
import { formatProblem } from '../workflow/problems.ts';
import {
  claimsIn,
  openTaskPlace,
  readWrittenTasks,
  type TaskBoardOptions,
  type TaskPlace,
  taskFacts,
} from './task-board.ts';

interface TasksCommandOptions extends TaskBoardOptions {
  /** `list` by default. */
  readonly action?: string | undefined;
  readonly id?: string | undefined;
  /** Who takes it, or gives it back. */
  readonly by?: string | undefined;
  readonly json?: boolean | undefined;
}

const actions = ['list', 'show', 'claim', 'release'] as const;
type Action = (typeof actions)[number];

/** Lists tasks, shows one, takes one, or gives one back. Throws TASK_NOT_FOUND, TASK_HELD, USAGE, NOT_A_REPOSITORY. */
export async function tasksCommand(
  { io }: { readonly io: CommandIo },
  options: TasksCommandOptions,
): Promise<ExitCode> {
  const action = actionOf(options);
  const place = await openTaskPlace(io, options);
  const written = await readWrittenTasks(place);
  if (written.failure) throw written.failure;
  const look = async (store: EventStore | undefined) => taskFacts(place, written, await claimsIn(store));
  const facts = await withStore(place, 'readonly', look);
  if (action === 'list') {
    list(place, facts, options);
    return exitCodes.ok;
  }
  const task = selectTask(facts, options.id ?? '');
  if (action === 'show') show(place, { facts, task }, options);
  else if (action === 'claim') await claimTask({ place, task, by: options.by });
  else await releaseTask({ place, task, by: options.by, look });
  return exitCodes.ok;
}

function actionOf({ action = 'list', id, by }: TasksCommandOptions): Action {
  const known = actions.find(each => each === action);
  if (known === undefined) throw unknownAction(action, id);
  if (known === 'list' && id !== undefined)
    throw new RepriseError('USAGE', 'a list is of all tasks', {
      hint: `to see one: reprise tasks show ${shellWord(id)}`,
    });
  if (known !== 'list' && (id ?? '') === '')
    throw new RepriseError('USAGE', `which task is it to ${known}?`, {
      hint: `name it: reprise tasks ${known} <id>; see which there are: reprise tasks`,
    });
  if (by !== undefined && by.trim() === '') throw new RepriseError('USAGE', 'the name after --by is empty');
  return known;
}

function unknownAction(action: string, id: string | undefined): RepriseError {
  const guess = nearest(action, actions);
  const rest = id === undefined ? '' : ` ${shellWord(id)}`;
  const toSee = id === undefined ? `to see a task: reprise tasks show ${shellWord(action)}; ` : '';
  return new RepriseError('USAGE', `${action} is nothing that can be done with tasks`, {
    hint: guess ? `did you mean: reprise tasks ${guess}${rest}` : `${toSee}there are ${actions.join(', ')}`,
  });
}

function list({ io }: TaskPlace, facts: TaskFacts, { json }: TasksCommandOptions): void {
  const { tasks, branch, uncommitted, problems, howToAdd } = facts;
  if (json) for (const task of tasks) writeLines(io.out, jsonText(describeTask(task)));
  else io.out(formatTaskList(tasks, lookOf(io, 'out')));
  for (const problem of problems) writeLines(io.err, safeText(formatProblem(problem)));
  if (json) return;
  if (tasks.length === 0) writeLines(io.err, safeLine(`no tasks on ${branch}; ${howToAdd}`));
  const { notes, hint } = uncommittedTexts(uncommitted, branch);
  for (const note of notes) writeLines(io.err, note);
  if (notes.length > 0) writeLines(io.err, `  hint: ${hint}`);
}

/** By its name, or by the name of its file. Throws TASK_NOT_FOUND. */
function selectTask({ tasks, uncommitted, branch }: TaskFacts, typed: string): TaskStanding {
  const name = typed.replace(/^.*\//, '').replace(/\.md$/, '');
  const found = tasks.find(({ id }) => id === typed) ?? tasks.find(({ id }) => id === name);
  if (found) return found;
  const here = uncommitted.find(({ id }) => id === typed || id === name);
  if (here) {
    throw new RepriseError('TASK_NOT_FOUND', `${here.file} is not on ${branch} yet`, {
      hint: uncommittedTexts([here], branch).hint,
    });
  }
  const guess = nearest(
    name,
    tasks.map(({ id }) => id),
  );
  throw new RepriseError('TASK_NOT_FOUND', `there is no task ${typed} on ${branch}`, {
    hint: guess === undefined ? 'see which there are: reprise tasks' : `did you mean ${guess}?`,
  });
}

function show(
  { io }: TaskPlace,
  { facts, task }: { readonly facts: TaskFacts; readonly task: TaskStanding },
  { json }: TasksCommandOptions,
): void {
  const { uncommitted, branch, problems } = facts;
  if (json) {
    const wrong = problems.filter(problem => problem.task === task.id).map(formatProblem);
    const body = task.task?.body ?? null;
    writeLines(io.out, jsonText({ ...describeTask(task), body, problems: wrong }, 2));
    return;
  }
  io.out(formatTask(task, facts, { color: io.color.out, now: io.now() }));
  const changed = uncommitted.filter(({ id }) => id === task.id);
  const { notes, hint } = uncommittedTexts(changed, branch);
  for (const note of notes) writeLines(io.err, `${note}\n  hint: ${hint}`);
}

/** Opens the store for as long as `work` takes; there may be none. */
async function withStore<T>(
  { project }: TaskPlace,
  mode: StoreMode,
  work: (store: EventStore | undefined) => Promise<T>,
): Promise<T> {
  const store = await openStoredRuns(project, mode);
  try {
    return await work(store);
  } finally {
    await store?.close();
  }
}

interface ClaimCommand {
  readonly place: TaskPlace;
  readonly task: TaskStanding;
  readonly by: string | undefined;
}

/** A person takes the task, so that no worker does. Throws TASK_HELD, and USAGE if the task cannot be understood. */
async function claimTask({ place, task: { id, task, standing }, by }: ClaimCommand): Promise<void> {
  const { io, project } = place;
  const who = by ?? userName(io) ?? 'somebody';
  if (!task)
    throw new RepriseError('USAGE', `${id} cannot be taken: ${standing.text}`, {
      hint: `see what is wrong: reprise tasks show ${shellWord(id)}`,
    });
  const store = await storeToWrite(place);
  try {
    for (;;) {
      const seen = (await store.claims.list()).find(claim => claim.task === id)?.token ?? 0;
      const { version } = task;
      const at = toTimestamp(io.now());
      const { kind, claim } = await store.claims.take({ task: id, version, seen, runId: null, by: who, at });
      if (kind === 'taken' && !isHeld(claim)) continue;
      if (kind === 'taken' && !(claim.runId === null && claim.by === who)) throw held(claim);
      const already = kind === 'taken' ? ' already' : '';
      const back = `reprise tasks release ${shellWord(id)}${project.commandSuffix}`;
      writeLines(
        io.err,
        `${safeLine(`${who} has ${id}${already}`)}; no worker takes it. To give it back: ${back}`,
      );
      return;
    }
  } finally {
    await store.close();
  }
}

async function storeToWrite({ project }: TaskPlace): Promise<EventStore> {
  const { stateDir, host, root } = project;
  const given = await host?.openStore?.(stateDir, { readonly: false });
  if (given) return given;
  if (!existsSync(storeFile(stateDir))) excludeFromGit(root);
  return openStore(stateDir);
}

const held = ({ task, by, runId, at }: Claim): RepriseError =>
  new RepriseError('TASK_HELD', `${by} has ${task} since ${at}${runId === null ? '' : `, in run ${runId}`}`, {
    hint: `to take it away: reprise tasks release ${shellWord(task)}`,
  });

/** Whatever became of the task counts no more, and whoever has it has it no longer. */
async function releaseTask({
  place,
  task: { id, claim, standing },
  by,
  look,
}: ClaimCommand & { readonly look: (store: EventStore | undefined) => Promise<TaskFacts> }): Promise<void> {
  const { io } = place;
  const say = (text: string) => writeLines(io.err, safeLine(text));
  if (!claim || claim.state === 'released') {
    say(`nobody has ${id}, so there is nothing to give back; it is ${standing.text}`);
    return;
  }
  const who = by ?? userName(io);
  const reason = `released${who ? ` by ${who}` : ''}`;
  const after = await withStore(place, 'writable', async store => {
    await store?.claims.settle({ task: id, state: 'released', at: toTimestamp(io.now()), reason });
    return look(store);
  });
  for (const line of lossOf(claim, place.project)) say(line);
  say(`${id} is given back: ${outlookOf(after.tasks.find(each => each.id === id))}`);
}

/** What whoever had it has to know. */
function lossOf(claim: Claim, { commandSuffix }: Project): readonly string[] {
  const { by, runId, task } = claim;
  if (!isHeld(claim)) return [];
  if (runId === null) return [`${by} had it`];
  return [
    `${by} is at work on ${task} and can no longer land it: its claim does not count any more`,
    `to stop it now: reprise cancel ${runId}${commandSuffix}`,
  ];
}

function outlookOf(after: TaskStanding | undefined): string {
  if (!after) return 'its text is gone from the branch, so nobody takes it';
  const { standing, task } = after;
  if (standing.word === 'ready') return `a worker may take it now, with the agent ${standing.agent.name}`;
  if (standing.word === 'done' && task?.file !== undefined)
    return `but its file says \`state: done\`; to have it done again, write \`state: ready\` in ${task.file} and commit it`;
  return `it is ${standing.text}`;
}
