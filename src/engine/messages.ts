import { toErrorData } from '../core/errors.ts';
import { isFlat } from '../effects/effect.ts';
import type { InboxEntry } from '../store/port.ts';
import type { Question } from './run/function-step.ts';
import type { StepEnd } from './run/messages.ts';
import type { DurableTimer, NodeState } from './state/step-state.ts';
import type { WorkNote } from './step/contract.ts';

/** What a timer of a step is for. */
export type TimerName = DurableTimer | 'attempt' | 'step';

/** What lanes tell the engine lane of their run. Everything that happens comes through here. */
export type Message =
  | {
      readonly kind: 'ended';
      readonly node: NodeState;
      readonly end: StepEnd;
      /** What is to be remembered together with the end. */
      readonly notes?: readonly WorkNote[] | undefined;
    }
  | { readonly kind: 'asked'; readonly node: NodeState; readonly questions: readonly Question[] }
  /** Something of its work is to be remembered; whoever sent it waits for the receipt. */
  | {
      readonly kind: 'noted';
      readonly node: NodeState;
      readonly notes: readonly WorkNote[];
      readonly receipt: string;
    }
  | { readonly kind: 'fired'; readonly node: NodeState; readonly timer: TimerName }
  | { readonly kind: 'inbox'; readonly entries: readonly InboxEntry[] }
  | { readonly kind: 'interrupted'; readonly reason: string }
  | { readonly kind: 'over-budget'; readonly budgetMs: number }
  /** The run has another owner. */
  | { readonly kind: 'lost' }
  /** A lane that serves the engine cannot go on. */
  | { readonly kind: 'broken'; readonly error: unknown };

/** An output that is an object goes to functions, which may change it. */
export const isLastingMessage = (message: Message): boolean =>
  message.kind === 'ended' && message.notes === undefined && isFlat(message.end);

/** A message as data, for tapes: steps are named, not held. */
export function describeMessage(message: Message): unknown {
  if (message.kind === 'broken') return { kind: message.kind, error: toErrorData(message.error) };
  if (!('node' in message)) return message;
  const { node, ...rest } = message;
  return { unit: node.node.unit, ...rest };
}
