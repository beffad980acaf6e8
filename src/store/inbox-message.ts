import { z } from 'zod';
import { RepriseError } from '../core/errors.ts';
import type { Json } from '../core/json.ts';
import type { InboxEntry, InboxMessage } from './port.ts';

const optional = z.exactOptional(z.string());

const schema: z.ZodType<InboxMessage> = z.discriminatedUnion('kind', [
  z.strictObject({
    kind: z.literal('approval'),
    step: z.string(),
    choice: z.string(),
    by: optional,
    comment: optional,
  }),
  z.strictObject({
    kind: z.literal('signal'),
    name: z.string(),
    payload: z.custom<Json>(value => value !== undefined),
    by: optional,
  }),
  z.strictObject({ kind: z.literal('cancel'), reason: z.string(), by: optional }),
]);

export interface InboxRow {
  readonly id: number;
  readonly at: string;
  readonly message: string;
}

/** Throws HISTORY_INVALID, naming the run and the entry: a message that nobody understands must not be lost silently. */
export function toInboxEntry(runId: string, { id, at, message }: InboxRow): InboxEntry {
  try {
    return { id, at, message: schema.parse(JSON.parse(message)) };
  } catch (cause) {
    throw new RepriseError('HISTORY_INVALID', `inbox entry ${id} of run ${runId} cannot be read`, {
      hint: 'it may come from a newer Reprise: upgrade, or check the store for damage',
      cause,
    });
  }
}
