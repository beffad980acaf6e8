import type { Cancellation } from '../../../effects/effect.ts';
import type { PerformOnModel } from './modelled.ts';

type AnyEffect = (args: never) => Promise<unknown>;
type Result<E extends AnyEffect> = Awaited<ReturnType<E>>;

/** The compiler sees to it that the model takes and gives what the effect itself does. */
export const like = <E extends AnyEffect>(
  perform: (args: Parameters<E>[0], cancellation: Cancellation) => Result<E> | Promise<Result<E>>,
  isOver?: (args: Parameters<E>[0]) => boolean,
): PerformOnModel => ({ perform, ...(isOver ? { isOver } : {}) });
