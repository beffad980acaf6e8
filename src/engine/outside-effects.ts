import type { Clock } from '../core/index.ts';
import { Cancelled, type World } from '../effects/index.ts';

/** Effects for the clock and the keyboard, shared by engine lanes and workers. */
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

  /** Resolves with the reason when this process is asked to stop. */
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
