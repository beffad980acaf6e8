import type { Clock } from '../core/time.ts';
import { Cancelled } from '../effects/effect.ts';
import type { World } from '../effects/world.ts';

/** The clock and the keyboard, which engine lanes and workers ask alike. */
export const outsideEffects = ({ world, clock }: { readonly world: World; readonly clock: Clock }) => ({
  now: world.effect<void, number>({
    name: 'clock.now',
    span: 'short',
    answer: 'tape',
    perform: () => clock.now(),
  }),

  sleepUntil: world.effect<number, void>({
    name: 'clock.sleep',
    span: 'long',
    answer: 'tape',
    perform: (epochMs, { signal }) => clock.waitUntil(epochMs, signal),
  }),

  /** Resolves when somebody asks this process to stop, with the reason. */
  interrupted: world.effect<AbortSignal, string>({
    name: 'keyboard.interrupt',
    span: 'long',
    answer: 'tape',
    taped: { args: () => undefined },
    perform: (interrupt, cancellation) =>
      new Promise((resolve, reject) => {
        const stop = () => resolve(String(interrupt.reason));
        if (interrupt.aborted) stop();
        interrupt.addEventListener('abort', stop, { once: true });
        cancellation.onCancel(() => {
          interrupt.removeEventListener('abort', stop);
          reject(new Cancelled('keyboard.interrupt'));
        });
      }),
  }),
});
