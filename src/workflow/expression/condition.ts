import { childrenOf, type Expression, type Fault } from './ast.ts';
import { functionNamed } from './functions.ts';
import { parseExpression } from './parse.ts';
import { openingMark, parseTemplate } from './template.ts';

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
