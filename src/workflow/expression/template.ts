import type { Json } from '../../core/index.ts';
import { type EvaluationContext, evaluate, functionNamed, toText } from './evaluate.ts';
import { childrenOf, type Expression, type ParseFault, parseExpression } from './parse.ts';

/** A scalar with `${{ }}` in it: literal text and expressions, in order. */
interface Template {
  readonly parts: readonly (string | Expression)[];
  /** Syntax errors. A template that has any must not be evaluated. */
  readonly faults: readonly ParseFault[];
}

export const openingMark = '${{';

/** Splits a scalar into text and expressions. Never throws: faults are part of the result. */
export function parseTemplate(text: string): Template {
  const parts: (string | Expression)[] = [];
  const faults: ParseFault[] = [];
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

/** Returns the offset of the `}}` that closes the `${{` at `open`. Ignores `}}` inside quoted text. */
export function closingMark(text: string, open: number): number | undefined {
  let quoted = false;
  for (let at = open + openingMark.length; at < text.length; at++) {
    if (text[at] === "'") quoted = !quoted;
    else if (!quoted && text.startsWith('}}', at)) return at;
  }
  return undefined;
}

export const unclosed = (open: number): ParseFault => ({
  message: '`${{` has no closing `}}`',
  hint: "for a literal `${{`, write ${{ '${{' }}",
  start: open,
  end: open + openingMark.length,
});

/** Returns the value itself if the template is a single expression, and a string otherwise. */
export function evaluateTemplate({ parts }: Template, context: EvaluationContext): Json {
  const [only, ...others] = parts;
  if (only !== undefined && typeof only !== 'string' && others.length === 0) return evaluate(only, context);
  return parts.map(part => (typeof part === 'string' ? part : toText(evaluate(part, context)))).join('');
}

type ParsedCondition =
  | { readonly kind: 'condition'; readonly expression: Expression }
  | { readonly kind: 'faults'; readonly faults: readonly ParseFault[] };

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
        message: 'text outside of `${{ }}` turns this condition into a string, which is always true',
        hint: 'remove `${{ }}` from the condition',
        start,
        end: text.trimEnd().length,
      },
    ],
  };
}

/** Returns true if the expression calls `always()`, `success()`, `failure()` or `cancelled()` anywhere. */
export function readsStatus(expression: Expression): boolean {
  if (expression.kind === 'call' && functionNamed(expression.name)?.readsStatus) return true;
  return childrenOf(expression).some(readsStatus);
}
