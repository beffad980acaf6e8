import { RepriseError } from '../core/errors.ts';
import { nearest } from '../core/suggest.ts';
import { type ExitCode, exitCodes } from '../project/exit-codes.ts';
import { type CommandIo, lookOf, writeLines } from '../project/host.ts';
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
import { claimTask, releaseTask, withStore } from './task-claims.ts';

export interface TasksCommandOptions extends TaskBoardOptions {
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
