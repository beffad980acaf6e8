import { RepriseError } from '../../../core/index.ts';
import { type EvaluationContext, evaluate, toText } from '../../expression/evaluate.ts';
import { type Expression, type ParseFault, parseExpression } from '../../expression/parse.ts';
import { openingMark, unclosed } from '../../expression/template.ts';
import { type Slot, type SlotPlace, scanShell } from './scan.ts';

/** A script whose `${{ }}` are replaced by references to environment variables, so that no value can become code. */
interface ShellTemplate {
  readonly script: string;
  readonly values: readonly { readonly name: string; readonly expression: Expression }[];
  /** Syntax errors, and values in unsafe positions. A template that has any must not run. */
  readonly faults: readonly ParseFault[];
}

/** Prefix of the variables: `REPRISE_VALUE_1` and so on. */
export const valuePrefix = 'REPRISE_VALUE_';

/** Extracts the expressions from a script. Never throws. */
export function parseShellTemplate(text: string, shell: 'bash' | 'sh'): ShellTemplate {
  if (!text.includes(openingMark)) return { script: text, values: [], faults: [] };
  const scan = scanShell(text, shell);
  const faults: ParseFault[] = scan.unclosed === undefined ? [] : [unclosed(scan.unclosed)];
  const values: { name: string; expression: Expression }[] = [];
  let script = '';
  let copied = 0;
  for (const slot of scan.slots) {
    const start = slot.start + openingMark.length;
    const parsed = parseExpression(text.slice(start, slot.end - 2), start);
    const name = `${valuePrefix}${values.length + 1}`;
    const replacement = replacementFor(slot, name);
    if (parsed.kind === 'fault') faults.push(parsed.fault);
    else values.push({ name, expression: parsed.expression });
    if (replacement.kind === 'refused') faults.push({ ...replacement, start: slot.start, end: slot.end });
    else script += text.slice(copied, slot.start - (slot.afterDollar ? 1 : 0)) + replacement.text;
    copied = slot.end;
  }
  return { script: script + text.slice(copied), values, faults };
}

/** Evaluates an expression for an environment variable. Throws EXPRESSION_FAILED if the text contains a NUL. */
export function environmentText(expression: Expression, context: EvaluationContext): string {
  return withoutNul(toText(evaluate(expression, context)));
}

/** Returns the text unchanged. Throws EXPRESSION_FAILED if it contains a NUL. */
export function withoutNul(text: string): string {
  if (!text.includes('\0')) return text;
  throw new RepriseError('EXPRESSION_FAILED', 'a value for a script contains a NUL character', {
    hint: 'environment variables cannot contain NUL: write the value to a file and pass the path',
  });
}

type Replacement =
  | { readonly kind: 'text'; readonly text: string }
  | { readonly kind: 'refused'; readonly message: string; readonly hint: string };

function replacementFor({ place, afterDollar }: Slot, name: string): Replacement {
  const text = (reference: string, dollar: string): Replacement => ({
    kind: 'text',
    text: (afterDollar ? dollar : '') + reference,
  });
  switch (place) {
    case 'bare':
      return text(`"\${${name}}"`, '\\$');
    case 'double':
    case 'document':
      return text(`\${${name}}`, '\\$');
    case 'single':
      return text(`'"\${${name}}"'`, '$');
    case 'ansi':
      return text(`'"\${${name}}"$'`, '$');
    case 'quoted-document':
    case 'delimiter':
    case 'arithmetic':
    case 'parameter':
    case 'backticks':
      return { kind: 'refused', ...refusals[place] };
  }
}

const assignFirst = 'assign it to a variable on its own line (`value=${{ ... }}`)';

const refusals = {
  'quoted-document': {
    message:
      '`${{ }}` cannot be used in a here-document with a quoted delimiter: the shell expands nothing in it',
    hint: 'remove the quotes from the delimiter, and write `\\$` for every literal `$`',
  },
  delimiter: {
    message: '`${{ }}` cannot be the delimiter of a here-document',
    hint: 'use a fixed word such as `EOF`',
  },
  arithmetic: {
    message: '`${{ }}` cannot be used in shell arithmetic, where its value could run commands',
    hint: `${assignFirst}, check that it is a number, then use the variable`,
  },
  parameter: {
    message: '`${{ }}` cannot be used inside `${...}`',
    hint: `${assignFirst}, then use the variable`,
  },
  backticks: {
    message: '`${{ }}` cannot be used in backticks that contain a backslash',
    hint: 'use `$( )` instead of backticks',
  },
} as const satisfies Partial<Record<SlotPlace, { message: string; hint: string }>>;
