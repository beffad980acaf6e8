import type { AgentDefinition } from './agent.ts';
import type { SessionRequest, TurnEnd } from './session.ts';

/**
 * The key of a session. A worker follows the `<next>` instruction of an agent, so text that the agent merely repeats, from
 * a task, a file or a tool, must not pass for one. The end of the prompt shows the tag with a key that no other text can
 * know, and the agent repeats it.
 */

/** Opening tag, as prompts show it and agents repeat it. */
const nextTag = (key?: string): string => (key === undefined ? '<next>' : `<next key="${key}">`);

/** Matches an opening tag at the start of a line, with its indentation and its key. */
export const openingTag = /^( *)<next(?: key="([^"<>]*)")?>/;

const anyOpeningTag = /<next(?: key="([^"<>]*)")?>/g;

/** Programs and scripts can be trusted to mean what they print; models cannot. */
const needsKey = ({ kind }: Pick<AgentDefinition, 'kind'>): boolean =>
  kind === 'claude' || kind === 'codex' || kind === 'acp';

/**
 * Adds the ending to the prompt of a request. A model must repeat the key; a program may, and finds it in
 * `REPRISE_NEXT_KEY`.
 */
export function withEnding(
  request: SessionRequest,
  { ending, key }: { readonly ending: string; readonly key: string },
): SessionRequest {
  const keyed = needsKey(request.agent);
  return {
    ...request,
    prompt: `${request.prompt}\n\n${keyed ? ending.replaceAll(nextTag(), nextTag(key)) : ending}`,
    ...(keyed ? { nextKey: key } : { env: { ...request.env, REPRISE_NEXT_KEY: key } }),
  };
}

/** Returns the prompt without the key, in the form in which prompts are stored and compared. */
export const promptWithoutKey = ({ prompt, nextKey }: SessionRequest): string =>
  nextKey === undefined ? prompt : prompt.replaceAll(nextTag(nextKey), nextTag());

/**
 * Returns a turn whose last opening tag shows whether it has the right key: none if it has, else the key `missing` or
 * `wrong`. A session that was recorded or written before is judged by its own key.
 */
export function judgedTurn(
  turn: Extract<TurnEnd, { kind: 'end' }>,
  request: SessionRequest,
  key: string,
): Extract<TurnEnd, { kind: 'end' }> {
  const { result, nextKey = key } = turn;
  const last = result.kind === 'ok' ? [...result.text.matchAll(anyOpeningTag)].at(-1) : undefined;
  if (result.kind !== 'ok' || !last) return turn;
  const [tag, given] = last;
  const isRequired = turn.nextKey === undefined ? needsKey(request.agent) : nextKey !== null;
  const isRight = given === undefined ? !isRequired : nextKey === null || given === nextKey;
  const judged = nextTag(isRight ? undefined : given === undefined ? 'missing' : 'wrong');
  const text = `${result.text.slice(0, last.index)}${judged}${result.text.slice(last.index + tag.length)}`;
  return { ...turn, result: { ...result, text } };
}
