import type { Json } from '../../core/json.ts';
import { evaluate, functionNamed, type Surroundings, toText } from './evaluate.ts';
import { childrenOf, type Expression, type Fault, parseExpression } from './parse.ts';

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

type ParsedCondition =
  | { readonly kind: 'condition'; readonly expression: Expression }
  | { readonly kind: 'faults'; readonly faults: readonly Fault[] };

/** Parses the text of an `if:`, with or without `${{ }}` around it. Never throws. */
export function parseCondition(text: string): ParsedCondition {
  if (!text.includes(openingMark)) {
    const parsed = parseExpression(text);
    if (parsed.kind === 'fault') return { kind: 'faults', faults: [parsed.fault] };
    return { kind: 'condition', expression: parsed.expression };
  }
  const { parts, faults } = parseTemplate(text);
  if (faults.length > 0) return { kind: 'faults', faults };
  const [only, ...others] = parts.filter(part => typeof part !== 'string' || part.trim() !== '');
  if (only !== undefined && typeof only !== 'string' && others.length === 0) {
    return { kind: 'condition', expression: only };
  }
  const start = text.length - text.trimStart().length;
  return {
    kind: 'faults',
    faults: [
      {
        message: 'text beside `${{ }}` makes this condition a text, which is always true',
        hint: 'write the whole condition without `${{ }}`',
        start,
        end: text.trimEnd().length,
      },
    ],
  };
}

/** Whether it calls `always()`, `success()`, `failure()` or `cancelled()` anywhere. */
export function readsStatus(expression: Expression): boolean {
  if (expression.kind === 'call' && functionNamed(expression.name)?.readsStatus) return true;
  return childrenOf(expression).some(readsStatus);
}
