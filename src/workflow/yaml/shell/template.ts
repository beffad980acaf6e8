import { RepriseError } from '../../../core/errors.ts';
import { evaluate, type Surroundings, toText } from '../../expression/evaluate.ts';
import { type Expression, type Fault, parseExpression } from '../../expression/parse.ts';
import { openingMark, unclosed } from '../../expression/template.ts';
import { type Slot, type SlotPlace, scanShell } from './scan.ts';

/** A script in which every `${{ }}` has become a reference to an environment variable: no value is ever code. */
interface ShellTemplate {
  readonly script: string;
  readonly values: readonly { readonly name: string; readonly expression: Expression }[];
  /** What did not parse, or stands where the shell cannot take a value. Such a template must not be run. */
  readonly faults: readonly Fault[];
}

/** What the variables are called: `REPRISE_VALUE_1` and so on. */
export const valuePrefix = 'REPRISE_VALUE_';

/** Takes the expressions out of a script. Never throws. */
export function parseShellTemplate(text: string, shell: 'bash' | 'sh'): ShellTemplate {
  if (!text.includes(openingMark)) return { script: text, values: [], faults: [] };
  const scan = scanShell(text, shell);
  const faults: Fault[] = scan.unclosed === undefined ? [] : [unclosed(scan.unclosed)];
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

/** The text of a value for an environment variable. Throws EXPRESSION_FAILED if it holds a NUL, which none can. */
export function environmentText(expression: Expression, surroundings: Surroundings): string {
  return withoutNul(toText(evaluate(expression, surroundings)));
}

/** Throws EXPRESSION_FAILED. */
export function withoutNul(text: string): string {
  if (!text.includes('\0')) return text;
  throw new RepriseError('EXPRESSION_FAILED', 'a value for a script contains a NUL character', {
    hint: 'no environment variable can hold one: write the value to a file and pass its name',
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

const throughVariable = 'put it into a variable on a line of its own (`value=${{ ... }}`) and use that';

const refusals = {
  'quoted-document': {
    message: 'the shell expands nothing in a here-document whose delimiter is quoted, so no value can get in',
    hint: 'take the quotes off the delimiter, and write `\\$` for every `$` that is meant literally',
  },
  delimiter: {
    message: 'the delimiter of a here-document cannot be a value',
    hint: 'use a fixed word such as `EOF`',
  },
  arithmetic: {
    message: 'the shell computes what stands here, and a computed value can run commands',
    hint: `${throughVariable} once you have checked that it is a number`,
  },
  parameter: {
    message: 'a value cannot stand inside of `${...}`',
    hint: throughVariable,
  },
  backticks: {
    message: 'a value cannot stand in backticks that contain a backslash',
    hint: 'write `$( )` instead of backticks',
  },
} as const satisfies Partial<Record<SlotPlace, { message: string; hint: string }>>;
