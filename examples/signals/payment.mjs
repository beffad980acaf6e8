// @ts-check
import { step, workflow } from 'reprise';
import { z } from 'zod';

const input = z.object({ patience: z.string().default('1h') });
const payment = z.object({ amount: z.number() });

const wait = step('wait', {
  input,
  run: async (_, ctx) => {
    ctx.log('waiting for the payment', { patience: ctx.input.patience });
    // Both waits are durable: the first one to end decides, even across a crash and a resume.
    return Promise.race([
      ctx.waitForSignal('payment', { schema: payment }).then(({ amount }) => ({ paid: true, amount })),
      ctx.sleep(ctx.input.patience).then(() => ({ paid: false, amount: 0 })),
    ]);
  },
});

const ship = step('ship', { after: { wait }, if: ({ wait: { paid } }) => paid, run: () => 'shipped' });
const remind = step('remind', { after: { wait }, if: ({ wait: { paid } }) => !paid, run: () => 'reminded' });

export default workflow('payment', { input, steps: [wait, ship, remind] });
