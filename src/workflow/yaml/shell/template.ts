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
  if (scan.fault && scan.unclosed === undefined) faults.push(syntaxFault(scan.fault));
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

/** Without a valid script, the positions of its values are not certain. */
const syntaxFault = ({ message, at }: { readonly message: string; readonly at: number }): ParseFault => ({
  message: `\`\${{ }}\` cannot be used in a script that is not valid shell syntax: ${message}`,
  hint: 'fix the script, or pass the values with `env:`',
  start: at,
  end: at + 1,
});

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
    default:
      return { kind: 'refused', ...refusalFor(place) };
  }
}

interface Refusal {
  readonly message: string;
  readonly hint: string;
}

type Refused = Exclude<SlotPlace, 'bare' | 'double' | 'single' | 'ansi' | 'document'>;

const passIt = 'pass it as a variable (`env: { VALUE: "${{ ... }}" }`)';

function refusalFor(place: Refused): Refusal {
  if (typeof place === 'string') return refusals[place];
  const { kind, by } = place;
  switch (kind) {
    case 'name':
      return {
        message: '`${{ }}` cannot be used as the name of a command, because its value would choose what runs',
        hint: `${passIt} and choose the command in the script, such as with \`case "$VALUE" in\``,
      };
    case 'computed':
      return {
        message: `\`\${{ }}\` cannot be an argument of \`${by}\`, because the command is known only when the script runs`,
        hint: `${passIt}, then use \`"$VALUE"\``,
      };
    case 'evaluated':
      return {
        message: `\`\${{ }}\` cannot be used in this argument of \`${by}\`, which would evaluate its value`,
        hint: `${passIt}, check it in the script, then use \`"$VALUE"\``,
      };
    case 'code':
      return {
        message: `\`\${{ }}\` cannot be used in the code that \`${by}\` runs`,
        hint: `${passIt} and read the variable in that code, or add the value as an argument after it`,
      };
    case 'input':
      return {
        message: `\`\${{ }}\` cannot be used in the input of \`${by}\`, which would run its value`,
        hint: `${passIt} and read the variable there`,
      };
    case 'variable':
      return {
        message: `\`\${{ }}\` cannot be the value of \`${by}\`, which the shell would run`,
        hint: 'use another variable',
      };
  }
}

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
    hint: `${passIt}, check that it is a number, then use \`$VALUE\``,
  },
  parameter: {
    message: '`${{ }}` cannot be used inside `${...}`',
    hint: `${passIt}, then use \`$VALUE\``,
  },
  backticks: {
    message: '`${{ }}` cannot be used in backticks that contain a backslash',
    hint: 'use `$( )` instead of backticks',
  },
  unreadable: {
    message: '`${{ }}` cannot be used here, because the shell would not read it as a value',
    hint: `${passIt}, then use \`"$VALUE"\``,
  },
} as const satisfies Record<Extract<Refused, string>, Refusal>;
