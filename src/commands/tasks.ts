import { nearest, RepriseError, toTimestamp } from '../core/index.ts';
import {
  type CommandIo,
  type ExitCode,
  excludeWorkspaces,
  exitCodes,
  openState,
  openStoredRuns,
  type Project,
  type StoreMode,
  styleOf,
  userName,
  writeLines,
} from '../project/index.ts';
import { type Claim, type EventStore, isHeld } from '../store/index.ts';
import { jsonText, shellWord } from '../terminal/index.ts';
import {
  describeTask,
  formatTask,
  formatTaskList,
  type TaskFacts,
  uncommittedTexts,
} from '../terminal/status/index.ts';
import { safeLine, safeText } from '../view/index.ts';
import type { TaskWithStatus } from '../worker/tasks/index.ts';
import { formatProblem } from '../workflow/index.ts';
import {
  claimsIn,
  openTaskContext,
  openTaskContexts,
  projectHeading,
  readWrittenTasks,
  type TaskBoardOptions,
  type TaskContext,
  taskFacts,
} from './task-board.ts';

interface TasksCommandOptions extends TaskBoardOptions {
  /** Defaults to `list`. */
  readonly action?: string | undefined;
  readonly id?: string | undefined;
  /** Name to claim or release with. Defaults to the current user. */
  readonly by?: string | undefined;
  readonly json?: boolean | undefined;
}

const actions = ['list', 'show', 'claim', 'release'] as const;
type TasksAction = (typeof actions)[number];

/** Lists tasks, or shows, claims or releases one. Throws TASK_NOT_FOUND, TASK_HELD, USAGE, NOT_A_REPOSITORY. */
export async function tasksCommand(
  { io }: { readonly io: CommandIo },
  options: TasksCommandOptions,
): Promise<ExitCode> {
  const action = actionOf(options);
  if (action === 'list') {
    for (const context of await openTaskContexts(io, options)) {
      const readFacts = await factsReader(context);
      list(context, await withStore(context, 'readonly', readFacts), options);
    }
    return exitCodes.ok;
  }
  const context = await openTaskContext(io, options);
  const readFacts = await factsReader(context);
  const facts = await withStore(context, 'readonly', readFacts);
  const task = selectTask(facts, options.id ?? '');
  if (action === 'show') show(context, { facts, task }, options);
  else if (action === 'claim') await claimTask({ context, task, by: options.by });
  else await releaseTask({ context, task, by: options.by, readFacts });
  return exitCodes.ok;
}

/** Reads the written tasks, and returns a function that combines them with the claims of a store. */
async function factsReader(
  context: TaskContext,
): Promise<(store: EventStore | undefined) => Promise<TaskFacts>> {
  const written = await readWrittenTasks(context);
  if (written.failure) throw written.failure;
  return async store => taskFacts(context, written, await claimsIn(store));
}

function actionOf({ action = 'list', id, by, all }: TasksCommandOptions): TasksAction {
  const known = actions.find(each => each === action);
  if (known === undefined) throw unknownAction(action, id);
  if (known === 'list' && id !== undefined)
    throw new RepriseError('USAGE', '`tasks list` takes no task name', {
      hint: `to show one task: reprise tasks show ${shellWord(id)}`,
    });
  if (known !== 'list' && (id ?? '') === '')
    throw new RepriseError('USAGE', `\`tasks ${known}\` needs a task name`, {
      hint: `name a task: reprise tasks ${known} <name>; to list all tasks: reprise tasks`,
    });
  if (known !== 'list' && all)
    throw new RepriseError('USAGE', '`--all` only lists tasks', { hint: 'reprise tasks --all' });
  if (by !== undefined && by.trim() === '') throw new RepriseError('USAGE', '--by needs a name');
  return known;
}

function unknownAction(action: string, id: string | undefined): RepriseError {
  const guess = nearest(action, actions);
  const rest = id === undefined ? '' : ` ${shellWord(id)}`;
  const toShow = id === undefined ? `to show a task: reprise tasks show ${shellWord(action)}` : '';
  return new RepriseError('USAGE', `unknown action ${action}; expected list, show, claim or release`, {
    hint: guess
      ? `did you mean: reprise tasks ${guess}${rest}`
      : toShow || 'see the options: reprise tasks --help',
  });
}

function list({ io, project }: TaskContext, facts: TaskFacts, { json, all }: TasksCommandOptions): void {
  const { tasks, branch, uncommitted, problems, howToAdd } = facts;
  const named = all ? { project: project.state.project } : {};
  if (all && !json) writeLines(io.out, projectHeading(project));
  if (json) for (const task of tasks) writeLines(io.out, jsonText({ ...named, ...describeTask(task) }));
  else io.out(formatTaskList(tasks, styleOf(io, 'out')));
  for (const problem of problems) writeLines(io.err, safeText(formatProblem(problem)));
  if (json) return;
  if (tasks.length === 0) writeLines(io.err, safeLine(`no tasks on ${branch}; ${howToAdd}`));
  const { notes, hint } = uncommittedTexts(uncommitted, branch);
  for (const note of notes) writeLines(io.err, note);
  if (notes.length > 0) writeLines(io.err, `  hint: ${hint}`);
}

/** Finds a task by its name or its file name. Throws TASK_NOT_FOUND. */
function selectTask({ tasks, uncommitted, branch }: TaskFacts, typed: string): TaskWithStatus {
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
    hint: guess === undefined ? 'list all tasks: reprise tasks' : `did you mean ${guess}?`,
  });
}

function show(
  { io }: TaskContext,
  { facts, task }: { readonly facts: TaskFacts; readonly task: TaskWithStatus },
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

/** Runs `work` with the store, which is `undefined` if the project has none yet. */
async function withStore<T>(
  { project }: TaskContext,
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
  readonly context: TaskContext;
  readonly task: TaskWithStatus;
  readonly by: string | undefined;
}

/** Claims a task for a person, so that no worker takes it. Throws TASK_HELD, and USAGE if the task is invalid. */
async function claimTask({ context, task: { id, task, status }, by }: ClaimCommand): Promise<void> {
  const { io, project } = context;
  const who = by ?? userName(io) ?? 'unknown';
  if (!task)
    throw new RepriseError('USAGE', `${id} cannot be claimed: ${status.text}`, {
      hint: `see what is wrong: reprise tasks show ${shellWord(id)}`,
    });
  const store = await storeToWrite(context);
  try {
    for (;;) {
      const seen = (await store.claims.list()).find(claim => claim.task === id)?.token ?? 0;
      const { version } = task;
      const at = toTimestamp(io.now());
      const { kind, claim } = await store.claims.take({ task: id, version, seen, runId: null, by: who, at });
      if (kind === 'taken' && !isHeld(claim)) continue;
      if (kind === 'taken' && !(claim.runId === null && claim.by === who)) throw held(claim);
      const already = kind === 'taken' ? 'already ' : '';
      const release = `reprise tasks release ${shellWord(id)}${project.commandSuffix}`;
      writeLines(
        io.err,
        `${safeLine(`${id} is ${already}claimed by ${who}`)}; no worker will take it. To release it: ${release}`,
      );
      return;
    }
  } finally {
    await store.close();
  }
}

async function storeToWrite({ project }: TaskContext): Promise<EventStore> {
  const hosted = await project.host?.openStore?.(project.stateDir, { readonly: false });
  if (hosted) return hosted;
  excludeWorkspaces(project);
  return openState({ ...project, mode: 'writable' });
}

const held = ({ task, by, runId, at }: Claim): RepriseError =>
  new RepriseError(
    'TASK_HELD',
    `${task} has been claimed by ${by} since ${at}${runId === null ? '' : `, in run ${runId}`}`,
    { hint: `to release it: reprise tasks release ${shellWord(task)}` },
  );

/** Ends the claim of a task, whatever its state, so that the task can be taken again. */
async function releaseTask({
  context,
  task: { id, claim, status },
  by,
  readFacts,
}: ClaimCommand & {
  readonly readFacts: (store: EventStore | undefined) => Promise<TaskFacts>;
}): Promise<void> {
  const { io } = context;
  const say = (text: string) => writeLines(io.err, safeLine(text));
  if (!claim || claim.state === 'released') {
    say(`${id} is not claimed, so there is nothing to release; its status: ${status.text}`);
    return;
  }
  const who = by ?? userName(io);
  const reason = `released${who ? ` by ${who}` : ''}`;
  const after = await withStore(context, 'writable', async store => {
    await store?.claims.settle({ task: id, state: 'released', at: toTimestamp(io.now()), reason });
    return readFacts(store);
  });
  for (const line of holderLines(claim, context.project)) say(line);
  say(`released ${id}: ${outlookText(after.tasks.find(each => each.id === id))}`);
}

/** Tells the consequences for the holder of the released claim. */
function holderLines(claim: Claim, { commandSuffix }: Project): readonly string[] {
  const { by, runId, task } = claim;
  if (!isHeld(claim)) return [];
  if (runId === null) return [`it was claimed by ${by}`];
  return [
    `${by} is still working on ${task}, but can no longer land it`,
    `to stop it now: reprise cancel ${runId}${commandSuffix}`,
  ];
}

function outlookText(after: TaskWithStatus | undefined): string {
  if (!after) return 'its file is no longer on the branch, so no worker will take it';
  const { status, task } = after;
  if (status.word === 'ready') return `a worker can take it now, with agent ${status.agent.name}`;
  if (status.word === 'done' && task?.file !== undefined)
    return `but its file has \`state: done\`; to redo it, set \`state: ready\` in ${task.file} and commit that`;
  return `its status: ${status.text}`;
}
