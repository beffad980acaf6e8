import type { Json } from '../core/json.ts';
import { event, type Signal } from './driver/protocol.ts';
import type { Decision } from './permissions/permissions.ts';
import type { HostAnswer, HostQuestion } from './session.ts';

/** What becomes of a wish: decided here, or for the host to decide. */
export type Ruling =
  | { readonly kind: 'decided'; readonly decision: Decision }
  | { readonly kind: 'ask'; readonly lineToAdd?: string | undefined };

interface Wish {
  readonly id: string;
  readonly tool: string;
  readonly input: Json;
}

/** Says what was decided, or hands the wish on to the host. */
export function permissionSignals(wish: Wish, ruling: Ruling): readonly Signal[] {
  const said = { type: 'permission', ...wish } as const;
  switch (ruling.kind) {
    case 'decided':
      return [event({ ...said, decision: ruling.decision })];
    case 'ask': {
      const question = { kind: 'permission', ...wish, lineToAdd: ruling.lineToAdd } as const;
      return [event(said), { kind: 'question', question }];
    }
  }
}

/** What the host decided. An answer that fits another question allows nothing. */
export function decisionOf(
  question: Extract<HostQuestion, { kind: 'permission' }>,
  answer: HostAnswer,
): Decision {
  if (answer.kind === 'allow') return { kind: 'allow' };
  const message = (answer.kind === 'deny' && answer.message) || `${question.tool} was not allowed.`;
  return { kind: 'deny', message, ...(question.lineToAdd ? { lineToAdd: question.lineToAdd } : {}) };
}
