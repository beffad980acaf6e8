import { toEpochMs } from '../../core/time.ts';
import { type Claim, isHeld } from '../../store/claims.ts';
import { firstLine, safeLine, safeText } from '../../view/safe-text.ts';
import type { StatusWord } from '../../view/step-board.ts';
import type { StandingWord, TaskStanding } from '../../worker/tasks/status.ts';
import { formatProblem } from '../../workflow/problems.ts';
import { glyphsFor, statusColour } from '../glyphs.ts';
import type { FormatOptions } from '../run/history.ts';
import { tableLines } from '../table.ts';
import { nameFor, painter, relativeTime } from '../text.ts';
import { shellWord } from '../words.ts';
import type { TaskFacts, UncommittedTask } from './facts.ts';

/** Tasks by name: mark, name, priority, how it stands, title. */
export function formatTaskList(tasks: readonly TaskStanding[], options: FormatOptions): string {
  const glyphs = glyphsFor(options.unicode);
  const lines = tableLines(
    tasks.map(each => {
      const { id, task, standing } = each;
      const status = statusOfTask(each);
      return [
        { text: glyphs[status], colour: statusColour(status) },
        { text: nameFor(safeLine(id), options.columns, glyphs.ellipsis) },
        { text: task?.priority ?? '' },
        { text: firstLine(standing.text), colour: statusColour(status) },
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

/** All that is known of a task, and its text below. */
export function formatTask(
  { id, task, claim, standing }: TaskStanding,
  { branch, problems }: Pick<TaskFacts, 'branch' | 'problems'>,
  { color, now }: TaskTextOptions,
): string {
  const paint = painter(color);
  const rows: (readonly [string, string] | undefined)[] = [
    ['stands', safeLine(standing.text)],
    standing.word === 'ready'
      ? ['agent', standing.agent.name]
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

const statuses: Readonly<Record<StandingWord, StatusWord>> = {
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

/** Whose mark and colour a task has. */
export const statusOfTask = ({ standing }: TaskStanding): StatusWord => statuses[standing.word];

/** Whether there is still something to be done. */
export const isOpen = ({ standing }: TaskStanding): boolean =>
  standing.word !== 'done' && standing.word !== 'landed';

const order = Object.keys(statuses) as readonly StandingWord[];

/** `2 ready, 1 held`. */
export function countsText(tasks: readonly TaskStanding[]): string {
  const counts = order.flatMap(word => {
    const many = tasks.filter(({ standing }) => standing.word === word).length;
    return many === 0 ? [] : [`${many} ${word}`];
  });
  return counts.join(', ');
}

/** That nobody sees the files yet, and what to do about it: a line for each, and the command. */
export function uncommittedTexts(
  uncommitted: readonly UncommittedTask[],
  branch: string,
): { readonly notes: readonly string[]; readonly hint: string } {
  const notes = uncommitted.map(({ file, isKnown }) =>
    safeLine(isKnown ? `${file}: its new text is not on ${branch} yet` : `${file} is not on ${branch} yet`),
  );
  const [only, ...others] = uncommitted;
  const files = others.length === 0 ? (only?.file ?? '') : (only?.file ?? '').replace(/[^/]*$/, '');
  return { notes, hint: `commit it: git add ${shellWord(files || '.')} && git commit` };
}
