// @ts-check
import { step, workflow } from 'reprise';
import { z } from 'zod';

const parcel = z.object({ order: z.string(), weight: z.number() });

const pack = step('pack', {
  input: parcel,
  run: (_, { input }) => ({ box: input.weight > 2 ? 'large' : 'small' }),
});
const label = step('label', { input: parcel, run: (_, { input }) => ({ text: `order ${input.order}` }) });

/** An ordinary workflow, used as a step of the workflow below. */
const delivery = workflow('delivery', {
  input: parcel,
  steps: [pack, label],
  output: { pack, label },
});

const order = z.object({ order: z.string(), quantity: z.number().int().positive().default(2) });

const validate = step('validate', {
  input: order,
  run: (_, { input }) => ({ lines: [{ sku: 'mug', quantity: input.quantity }] }),
});

// These two steps depend only on `validate`, so they run in parallel.
const price = step('price', {
  after: { validate },
  run: ({ validate: { lines } }) => ({ total: lines.reduce((sum, { quantity }) => sum + quantity * 12, 0) }),
});
const reserve = step('reserve', {
  after: { validate },
  run: ({ validate: { lines } }) => ({
    weight: lines.reduce((sum, { quantity }) => sum + quantity * 0.5, 0),
  }),
});

const charge = step('charge', {
  after: { price, reserve },
  retry: { attempts: 3, backoff: '50ms' },
  run: ({ price: { total } }, { attempt, log }) => {
    if (attempt === 1) throw new Error('the payment service is busy');
    log('charged', { total });
    return { charged: total, attempt };
  },
});

const deliver = step('deliver', {
  after: { charge, reserve },
  input: order,
  uses: delivery,
  with: ({ reserve: { weight } }, input) => ({ order: input.order, weight }),
});

export default workflow('order', {
  input: order,
  steps: [validate, price, reserve, charge, deliver],
  output: { charge, deliver },
});
