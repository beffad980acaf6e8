import type { Json } from '../../core/json.ts';
import type { Expression, Fault } from './ast.ts';
import { evaluate, type Surroundings } from './evaluate.ts';
import { parseExpression } from './parse.ts';
import { toText } from './values.ts';

/** A scalar with `${{ }}` in it: literal text and expressions, in order. */
interface Template {
  readonly parts: readonly (string | Expression)[];
  /** What did not parse. Such a template must not be evaluated. */
  readonly faults: readonly Fault[];
}

export const openingMark = '${{';

/** Splits a scalar at its `${{ }}`. Never throws: faults are part of the result. */
export function parseTemplate(text: string): Template {
  const parts: (string | Expression)[] = [];
  const faults: Fault[] = [];
  let at = 0;
  for (let open = text.indexOf(openingMark); open !== -1; open = text.indexOf(openingMark, at)) {
    if (open > at) parts.push(text.slice(at, open));
    const close = closingMark(text, open);
    if (close === undefined) return { parts, faults: [...faults, unclosed(open)] };
    const start = open + openingMark.length;
    const parsed = parseExpression(text.slice(start, close), start);
    if (parsed.kind === 'fault') faults.push(parsed.fault);
    else parts.push(parsed.expression);
    at = close + 2;
  }
  if (at < text.length) parts.push(text.slice(at));
  return { parts, faults };
}

/** Where the `}}` stands that closes the `${{` at `open`; one inside a quoted text does not count. */
export function closingMark(text: string, open: number): number | undefined {
  let quoted = false;
  for (let at = open + openingMark.length; at < text.length; at++) {
    if (text[at] === "'") quoted = !quoted;
    else if (!quoted && text.startsWith('}}', at)) return at;
  }
  return undefined;
}

export const unclosed = (open: number): Fault => ({
  message: '`${{` has no closing `}}`',
  hint: "to write the sign itself: ${{ '${{' }}",
  start: open,
  end: open + openingMark.length,
});

/** A template that is exactly one expression keeps the type of its value; any other is text. */
export function evaluateTemplate({ parts }: Template, surroundings: Surroundings): Json {
  const [only, ...others] = parts;
  if (only !== undefined && typeof only !== 'string' && others.length === 0)
    return evaluate(only, surroundings);
  return parts.map(part => (typeof part === 'string' ? part : toText(evaluate(part, surroundings)))).join('');
}
