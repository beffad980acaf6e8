import type { ErrorData } from '../../core/index.ts';
import type { StepEnd } from '../../engine/index.ts';
import type { AgentMessage, Conversation, SessionEnd } from '../../engine/step/agent/index.ts';
import { failedWith } from '../../engine/step/index.ts';
import { checkNext, type NextAction, type NextRules, parseNext } from '../handoff/handoff.ts';
import { correctionPrompt } from '../prompts.ts';

export type AgentAnswer =
  | { readonly kind: 'next'; readonly next: NextAction; readonly text: string }
  /** There is no answer: the step ends. */
  | { readonly kind: 'ended'; readonly end: StepEnd };

export interface AgentQuestion {
  readonly first: AgentMessage;
  /** How often it is told that its answer cannot be followed. */
  readonly corrections: number;
  /** What it was told of how to answer. */
  readonly how: string;
  readonly rules: NextRules;
}

/** Talks to an agent until it has said in a way that can be followed what is to happen next. */
export async function askUntilValid(
  conversation: Conversation,
  { first, corrections, how, rules }: AgentQuestion,
): Promise<AgentAnswer> {
  let message = first;
  for (let unfinished = corrections; ; unfinished--) {
    const end = await conversation.send(message);
    if (end.kind === 'paused') return { kind: 'ended', end: end.end };
    if (end.kind === 'failed') return { kind: 'ended', end: failedWith(end.error) };
    const parsed = parseNext(toAnswer(end));
    const problem = parsed.kind === 'problem' ? parsed.message : checkNext(parsed.next, rules);
    if (parsed.kind === 'next' && problem === undefined)
      return { kind: 'next', next: parsed.next, text: end.text };
    if (unfinished <= 0) return { kind: 'ended', end: failedWith(noTransition(problem ?? '', corrections)) };
    message = conversation.after(end, correctionPrompt(problem ?? '', how));
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
