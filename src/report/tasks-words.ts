import type { UncommittedTask } from '../terminal/status/facts.ts';
import { shellWord } from '../terminal/words.ts';
import { safeLine } from '../view/safe-text.ts';
import type { StatusWord } from '../view/step-board.ts';
import type { StandingWord, TaskStanding } from '../worker/tasks/status.ts';

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
