import type { Asked } from '../effects/conductor/scheduler.ts';

const outside: ReadonlySet<string> = new Set(['keyboard.interrupt', 'inbox.next']);

/** Waits for a person or another process, which nobody is there to be. */
export const isOutside = ({ effect }: Asked): boolean =>
  outside.has(effect.name) && effect.awaits === undefined;

/** Whether a long effect that has begun may end, where everything is performed. */
export function canEndByItself(asked: Asked): boolean {
  const { effect, args } = asked;
  if (effect.awaits) return effect.awaits.isOver(args);
  if (effect.name === 'keyboard.interrupt') return (args as AbortSignal).aborted;
  return !isOutside(asked);
}
