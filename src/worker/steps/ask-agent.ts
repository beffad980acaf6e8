import type { ErrorData } from '../../core/errors.ts';
import type { StepEnd } from '../../engine/run/messages.ts';
import type { Message, Talks } from '../../engine/step/agent/conversation.ts';
import type { SessionEnd } from '../../engine/step/agent/session.ts';
import { failedWith } from '../../engine/step/outcome.ts';
import { checkNext, type Next, type NextRules, parseNext } from '../handoff/handoff.ts';
import { correctionPrompt } from '../prompts.ts';

export type AgentAnswer =
  | { readonly kind: 'next'; readonly next: Next; readonly text: string }
  /** There is no answer: the step ends. */
  | { readonly kind: 'ended'; readonly end: StepEnd };

export interface Question {
  readonly first: Message;
  /** How often it is told that its answer cannot be followed. */
  readonly corrections: number;
  /** What it was told of how to answer. */
  readonly how: string;
  readonly rules: NextRules;
}

/** Talks to an agent until it has said in a way that can be followed what is to happen next. */
export async function answerOf(
  talks: Talks,
  { first, corrections, how, rules }: Question,
): Promise<AgentAnswer> {
  let message = first;
  for (let left = corrections; ; left--) {
    const end = await talks.hold(message);
    if (end.kind === 'paused') return { kind: 'ended', end: end.end };
    if (end.kind === 'failed') return { kind: 'ended', end: failedWith(end.error) };
    const parsed = parseNext(toAnswer(end));
    const problem = parsed.kind === 'problem' ? parsed.message : checkNext(parsed.next, rules);
    if (parsed.kind === 'next' && problem === undefined)
      return { kind: 'next', next: parsed.next, text: end.text };
    if (left <= 0) return { kind: 'ended', end: failedWith(noTransition(problem ?? '', corrections)) };
    message = talks.after(end, correctionPrompt(problem ?? '', how));
  }
}

const toAnswer = ({ text, structured }: Extract<SessionEnd, { kind: 'ok' }>) => ({
  text,
  ...(structured === undefined ? {} : { structured }),
});

const noTransition = (problem: string, corrections: number): ErrorData => ({
  code: 'NO_TRANSITION',
  message: `the agent did not say what is to happen next${corrections === 0 ? '' : `, although it was asked ${corrections} times more`}: ${problem}`,
  hint: 'see what it said: reprise logs; say in its prompt how to end, or raise `workers.corrections`',
});
