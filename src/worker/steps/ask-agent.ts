import type { Denial } from '../../agents/index.ts';
import type { ErrorData } from '../../core/index.ts';
import type { StepEnd } from '../../engine/index.ts';
import type { AgentMessage, Conversation, SessionEnd } from '../../engine/step/agent/index.ts';
import { failedWith } from '../../engine/step/index.ts';
import { checkNext, type NextAction, type NextRules, parseNext } from '../handoff/handoff.ts';
import { correctionPrompt } from '../prompts.ts';

export type AgentAnswer =
  | {
      readonly kind: 'next';
      readonly next: NextAction;
      readonly text: string;
      /** Actions that its sessions were denied. */
      readonly denials: readonly Denial[];
    }
  /** The agent gave no valid answer, so the step ends. */
  | { readonly kind: 'ended'; readonly end: StepEnd };

export interface AgentQuestion {
  readonly first: AgentMessage;
  /** Number of times that the agent may correct an invalid answer. */
  readonly corrections: number;
  readonly rules: NextRules;
}

/** Talks to an agent until it ends with a valid `<next>` instruction or has used up its corrections. */
export async function askUntilValid(
  conversation: Conversation,
  { first, corrections, rules }: AgentQuestion,
): Promise<AgentAnswer> {
  let message = first;
  const denials: Denial[] = [];
  for (let left = corrections - (first.earlier ?? 0); ; left--) {
    const end = await conversation.send(message);
    denials.push(...end.denials);
    if (end.kind === 'paused') return { kind: 'ended', end: end.end };
    if (end.kind === 'failed') return { kind: 'ended', end: failedWith(end.error) };
    const parsed = parseNext(toAnswer(end));
    const problem = parsed.kind === 'problem' ? parsed.message : checkNext(parsed.next, rules);
    if (parsed.kind === 'next' && problem === undefined)
      return { kind: 'next', next: parsed.next, text: end.text, denials };
    if (left <= 0) return { kind: 'ended', end: failedWith(noTransition(problem ?? '', corrections)) };
    message = conversation.after(end, correctionPrompt(problem ?? ''));
  }
}

const toAnswer = ({ text, structured }: Extract<SessionEnd, { kind: 'ok' }>) => ({
  text,
  ...(structured === undefined ? {} : { structured }),
});

const afterCorrections = (count: number): string =>
  count === 0 ? '' : ` after ${count} ${count === 1 ? 'correction' : 'corrections'}`;

const noTransition = (problem: string, corrections: number): ErrorData => ({
  code: 'NO_TRANSITION',
  message: `the agent did not end with a valid \`<next>\` instruction${afterCorrections(corrections)}: ${problem}`,
  hint: 'read its messages: reprise logs; explain `<next>` in its prompt, or raise `workers.corrections`',
});
