import { toEpochMs } from '../../core/index.ts';
import { type Claim, isHeld } from '../../store/index.ts';
import { firstLine, type StatusWord, safeLine, safeText } from '../../view/index.ts';
import type { TaskStatusWord, TaskWithStatus } from '../../worker/tasks/index.ts';
import { formatProblem } from '../../workflow/index.ts';
import { glyphsFor, statusColour } from '../glyphs.ts';
import type { FormatOptions } from '../run/history.ts';
import { nameFor, painter, relativeTime, tableLines } from '../text.ts';
import { shellWord } from '../words.ts';
import type { TaskFacts, UncommittedTask } from './facts.ts';

/** List of tasks: mark, name, priority, status and title. */
export function formatTaskList(tasks: readonly TaskWithStatus[], options: FormatOptions): string {
  const glyphs = glyphsFor(options.unicode);
  const lines = tableLines(
    tasks.map(each => {
      const { id, task, status: taskStatus } = each;
      const status = statusOfTask(each);
      return [
        { text: glyphs[status], colour: statusColour(status) },
        { text: nameFor(safeLine(id), options.columns, glyphs.ellipsis) },
        { text: task?.priority ?? '' },
        { text: firstLine(taskStatus.text), colour: statusColour(status) },
        { text: safeLine(task?.title ?? ''), colour: 'dim' as const },
      ];
    }),
    {
      columns: [{}, {}, {}, { shrinks: true }, {}],
      width: options.columns,
      paint: painter(options.color),
      ellipsis: glyphs.ellipsis,
    },
  );
  return lines.map(line => `${line}\n`).join('');
}

interface TaskTextOptions extends Pick<FormatOptions, 'color'> {
  readonly now: number;
}

/** Everything known about a task, followed by its text. */
export function formatTask(
  { id, task, claim, status: taskStatus }: TaskWithStatus,
  { branch, problems }: Pick<TaskFacts, 'branch' | 'problems'>,
  { color, now }: TaskTextOptions,
): string {
  const paint = painter(color);
  const rows: (readonly [string, string] | undefined)[] = [
    ['status', safeLine(taskStatus.text)],
    taskStatus.word === 'ready'
      ? ['agent', taskStatus.agent.name]
      : task?.agent
        ? ['agent', task.agent]
        : undefined,
    task && ['priority', task.priority],
    task && ['state', task.state],
    task && task.needs.length > 0 ? ['needs', task.needs.join(', ')] : undefined,
    task?.file === undefined ? undefined : ['file', `${task.file} on ${branch}`],
    claim && ['claim', claimText(claim, now)],
    claim?.branch === undefined ? undefined : ['branch', claim.branch],
    claim?.commit === undefined ? undefined : ['commit', claim.commit],
  ];
  const wrong = problems.filter(problem => problem.task === id);
  return [
    `${paint('bold', safeLine(id))}${task ? `: ${safeLine(task.title)}` : ''}`,
    ...rows.flatMap(row => (row ? [`  ${paint('dim', row[0].padEnd(8))}  ${safeLine(row[1])}`] : [])),
    ...wrong.map(problem => `\n${paint('red', safeText(formatProblem(problem)))}`),
    ...(task && task.body.trim() !== '' ? ['', safeText(task.body).trim()] : []),
  ]
    .join('\n')
    .concat('\n');
}

/** `held by worker-1 in run k7x2, 42s ago`. */
function claimText(claim: Claim, now: number): string {
  const { state, by, runId, at, reason } = claim;
  const word = state === 'held' && !isHeld(claim) ? 'was held' : state;
  const run = runId === null ? '' : ` in run ${runId}`;
  const why = reason === undefined ? '' : `: ${reason}`;
  return `${word} by ${by}${run}, ${relativeTime(toEpochMs(at), now)}${why}`;
}

const statuses: Readonly<Record<TaskStatusWord, StatusWord>> = {
  ready: 'pending',
  held: 'running',
  waiting: 'waiting',
  draft: 'skipped',
  review: 'waiting',
  blocked: 'waiting',
  delivered: 'completed',
  parked: 'waiting',
  failed: 'failed',
  invalid: 'failed',
  done: 'completed',
  landed: 'completed',
};

/** Step status whose mark and color a task gets. */
export const statusOfTask = ({ status: taskStatus }: TaskWithStatus): StatusWord => statuses[taskStatus.word];

/** Whether the task is not finished yet. */
export const isOpen = ({ status: taskStatus }: TaskWithStatus): boolean =>
  taskStatus.word !== 'done' && taskStatus.word !== 'landed';

const order = Object.keys(statuses) as readonly TaskStatusWord[];

/** `2 ready, 1 held`. */
export function countsText(tasks: readonly TaskWithStatus[]): string {
  const counts = order.flatMap(word => {
    const many = tasks.filter(({ status: taskStatus }) => taskStatus.word === word).length;
    return many === 0 ? [] : [`${many} ${word}`];
  });
  return counts.join(', ');
}

/** Notes about task files that workers cannot see yet, one per file, and the command that commits them. */
export function uncommittedTexts(
  uncommitted: readonly UncommittedTask[],
  branch: string,
): { readonly notes: readonly string[]; readonly hint: string } {
  const notes = uncommitted.map(({ file, isKnown }) =>
    safeLine(isKnown ? `the changes to ${file} are not on ${branch} yet` : `${file} is not on ${branch} yet`),
  );
  const [only, ...others] = uncommitted;
  const files = others.length === 0 ? (only?.file ?? '') : (only?.file ?? '').replace(/[^/]*$/, '');
  return { notes, hint: `commit it: git add ${shellWord(files || '.')} && git commit` };
}
