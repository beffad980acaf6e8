import { closingMark, openingMark } from '../expression/template.ts';

/** A here-document that was announced and whose lines follow. */
export interface HereDocument {
  readonly delimiter: string;
  /** Nothing in its lines is expanded. */
  readonly isQuoted: boolean;
  readonly stripsTabs: boolean;
}

/** Reads `<<EOF` at `at`; `undefined` if no delimiter follows. `end` is behind it. */
export function readHereDocument(
  text: string,
  at: number,
): (HereDocument & { readonly end: number }) | undefined {
  const operator = /<<(-?)[ \t]*/y;
  operator.lastIndex = at;
  const found = operator.exec(text);
  const word = /(?:'[^']*'|"[^"]*"|\\[^\n]|[^\s;&|<>()'"\\])+/y;
  word.lastIndex = at + (found?.[0].length ?? 0);
  const written = word.exec(text)?.[0];
  if (!found || written === undefined || written.includes(openingMark)) return undefined;
  return {
    delimiter: written.replace(/'([^']*)'|"([^"]*)"|\\(.)/g, '$1$2$3'),
    isQuoted: /['"\\]/.test(written),
    stripsTabs: found[1] === '-',
    end: word.lastIndex,
  };
}

/** Whether a `((` that ends before `at` is arithmetic, and not a subshell within another: then it closes with `))`. */
export function isArithmetic(text: string, from: number): boolean {
  let depth = 1;
  for (let at = from; at < text.length; at++) {
    const sign = text[at];
    if (sign === '\\') at++;
    else if (text.startsWith(openingMark, at)) at = closingMark(text, at) ?? text.length;
    else if (sign === "'" || sign === '"') at = closingQuote(text, at);
    else if (sign === '(') depth++;
    else if (sign === ')' && --depth === 0) return text[at + 1] === ')';
  }
  return false;
}

function closingQuote(text: string, at: number): number {
  const close = text.indexOf(text[at] ?? '', at + 1);
  return close === -1 ? text.length : close;
}

/**
 * Whether a single quote must be closed inside the `${...}` whose name begins at `at`. In bash always; elsewhere, when
 * within double quotes, only in patterns (`${x#...}`): in words (`${x:-it's}`) it is an ordinary letter.
 */
export function quotesInParameter(
  text: string,
  at: number,
  { shell, isInDouble }: { readonly shell: 'bash' | 'sh'; readonly isInDouble: boolean },
): boolean {
  const name = /[#!]?(?:[A-Za-z_]\w*|\d+|[@*#?$!-])(?:\[[^\]]*\])?/y;
  name.lastIndex = at;
  const operator = text[at + (name.exec(text)?.[0].length ?? 0)] ?? '';
  return shell === 'bash' || !isInDouble || '#%/^,'.includes(operator);
}
