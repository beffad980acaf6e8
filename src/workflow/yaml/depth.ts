import { type CST, Parser } from 'yaml';

/**
 * The parser descends by recursion, and a process whose stack runs out inside a regular expression is aborted: no
 * `catch` helps. So files that are nested too deeply never reach it.
 */
const maxDepth = 100;

/** Whether collections stand inside of each other deeper than any workflow needs. */
export const isTooDeep = (text: string): boolean => mayBeDeep(text) && depthOf(text) > maxDepth;

/** Cheap, and `true` too often: brackets and dashes also stand in scripts. */
function mayBeDeep(text: string): boolean {
  let open = 0;
  let leading = 0;
  for (let at = 0; at < text.length; at++) {
    const sign = text[at];
    if (sign === '[' || sign === '{') open++;
    else if ((sign === ']' || sign === '}') && open > 0) open--;
    if (sign === '\n') leading = 0;
    else if (leading !== -1)
      leading = sign === ' ' || sign === '-' || sign === '?' || sign === '\t' ? leading + 1 : -1;
    if (open > maxDepth || leading > maxDepth) return true;
  }
  return false;
}

/** Reads the tokens only, which takes no recursion. */
function depthOf(text: string): number {
  let deepest = 0;
  const pending: { readonly token: CST.Token; readonly depth: number }[] = [];
  for (const token of new Parser().parse(text)) {
    pending.push({ token, depth: 0 });
    for (let next = pending.pop(); next; next = pending.pop()) {
      const depth = next.depth + 1;
      deepest = Math.max(deepest, depth);
      for (const inner of tokensIn(next.token)) pending.push({ token: inner, depth });
    }
  }
  return deepest;
}

function tokensIn(token: CST.Token): readonly CST.Token[] {
  if (token.type === 'document') return token.value ? [token.value] : [];
  if (!('items' in token)) return [];
  return token.items.flatMap(({ key, value }: CST.CollectionItem) =>
    [key, value].filter(inner => inner !== undefined && inner !== null),
  );
}
