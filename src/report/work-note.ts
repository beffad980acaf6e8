import type { StepProgress } from '../view/step-progress.ts';
import { changesText, itemText, landingsText } from './work-words.ts';

/** What a step or worker that succeeded came to. */
export function workNote(step: StepProgress): string {
  const { work, item } = step;
  if (step.fanOut) return fanOutNote(step);
  if (work.landings.length > 0) return landingsText(work.landings);
  const saved = work.workspace?.saved;
  const parts = [
    itemText(item),
    isSelected(step) ? 'selected' : '',
    saved && saved.files > 0 ? changesText(saved) : '',
  ];
  return parts.filter(part => part !== '').join(', ');
}

/** Whether it is the worker that was picked from several. */
export const isSelected = ({ path, parent }: StepProgress): boolean => {
  const winner = parent?.work.selection?.winner;
  return winner !== undefined && path === `${parent?.path}:${winner}`;
};

function fanOutNote({ children, work }: StepProgress): string {
  const succeeded = children.filter(({ status }) => status === 'completed').length;
  const selected = work.selection ? `, worker ${work.selection.winner} selected` : '';
  return `${succeeded} of ${children.length} succeeded${selected}`;
}
