import { RepriseError } from '../core/errors.ts';
import { type Fields, fields, firstProblem, isRecord, json, oneOf, text } from '../core/schema.ts';
import type { InboxEntry, InboxMessage } from './port.ts';

const knownFields: Readonly<Record<InboxMessage['kind'], Fields>> = {
  approval: fields({ kind: oneOf('approval'), step: text, choice: text }, { by: text, comment: text }),
  signal: fields({ kind: oneOf('signal'), name: text, payload: json }, { by: text }),
  cancel: fields({ kind: oneOf('cancel'), reason: text }, { by: text }),
};

function toMessage(raw: unknown): InboxMessage {
  const kind = isRecord(raw) ? raw['kind'] : undefined;
  const known =
    typeof kind === 'string' && Object.hasOwn(knownFields, kind)
      ? knownFields[kind as InboxMessage['kind']]
      : undefined;
  const problem = known ? firstProblem(known, raw) : `unknown kind ${JSON.stringify(kind)}`;
  if (problem !== undefined) throw new RepriseError('HISTORY_INVALID', problem);
  return raw as InboxMessage;
}

export interface InboxRow {
  readonly id: number;
  readonly at: string;
  readonly message: string;
}

/** Throws HISTORY_INVALID, naming the run and the entry: a message that nobody understands must not be lost silently. */
export function toInboxEntry(runId: string, { id, at, message }: InboxRow): InboxEntry {
  try {
    return { id, at, message: toMessage(JSON.parse(message)) };
  } catch (cause) {
    throw new RepriseError('HISTORY_INVALID', `inbox entry ${id} of run ${runId} cannot be read`, {
      hint: 'it may come from a newer Reprise: upgrade, or check the store for damage',
      cause,
    });
  }
}
