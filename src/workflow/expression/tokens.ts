import type { Fault, Span } from './ast.ts';

export type Token = Span &
  (
    | { readonly kind: 'number'; readonly value: number }
    | { readonly kind: 'string'; readonly value: string }
    | { readonly kind: 'name'; readonly text: string }
    | { readonly kind: 'sign'; readonly text: string }
    | { readonly kind: 'end' }
  );

/** Thrown inside the parser, and caught there. */
export class ExpressionFault extends Error {
  readonly fault: Fault;

  constructor(fault: Fault) {
    super(fault.message);
    this.fault = fault;
  }
}

const patterns = {
  space: /\s+/y,
  number: /[-+]?(?:0x[0-9a-f]+|0o[0-7]+|(?:\d+\.?\d*|\.\d+)(?:e[-+]?\d+)?)(?![\w.])/iy,
  string: /'(?:[^']|'')*'/y,
  name: /[A-Za-z_][\w-]*/y,
  sign: /\|\||&&|==|!=|<=|>=|[<>!()[\],.]/y,
} as const;

/** Long before a person writes so many, a machine went wrong; and the tree must not grow deeper than the stack. */
const maxTokens = 2000;

/** Splits `text`; offsets count from `base`. Throws ExpressionFault. */
export function tokenise(text: string, base: number): readonly Token[] {
  const tokens: Token[] = [];
  let at = 0;
  const match = (pattern: RegExp): string | undefined => {
    pattern.lastIndex = at;
    return pattern.exec(text)?.[0];
  };
  for (;;) {
    at += match(patterns.space)?.length ?? 0;
    const span = (length: number): Span => ({ start: base + at, end: base + at + length });
    if (at >= text.length) return [...tokens, { kind: 'end', ...span(0) }];
    if (tokens.length >= maxTokens) {
      throw new ExpressionFault({
        message: `the expression is longer than ${maxTokens} words and signs`,
        ...span(1),
      });
    }
    const afterValue = endsValue(tokens.at(-1));
    const number = afterValue ? undefined : match(patterns.number);
    const string = match(patterns.string);
    const name = match(patterns.name);
    const sign = match(patterns.sign);
    const found = number ?? string ?? name ?? sign;
    if (found === undefined) throw new ExpressionFault({ ...explain(text, at), ...span(1) });
    if (number !== undefined) tokens.push({ kind: 'number', value: Number(number), ...span(number.length) });
    else if (string !== undefined)
      tokens.push({ kind: 'string', value: unquote(string), ...span(string.length) });
    else tokens.push({ kind: name === undefined ? 'sign' : 'name', text: found, ...span(found.length) });
    at += found.length;
  }
}

const unquote = (literal: string): string => literal.slice(1, -1).replaceAll("''", "'");

/** After a value a `.` reads a property and a `-` would be arithmetic: neither begins a number. */
function endsValue(token: Token | undefined): boolean {
  if (token?.kind === 'sign') return token.text === ')' || token.text === ']';
  return token !== undefined;
}

function explain(text: string, at: number): Omit<Fault, keyof Span> {
  const sign = String.fromCodePoint(text.codePointAt(at) ?? 0);
  switch (sign) {
    case "'":
      return {
        message: 'the text has no closing quote',
        hint: "a quote inside a text is written twice: 'it''s'",
      };
    case '"':
    case '`':
      return { message: `${sign} cannot quote a text in an expression`, hint: "use single quotes: 'text'" };
    case '=':
      return { message: '`=` is not an operator', hint: 'compare with `==`' };
    case '&':
      return { message: '`&` is not an operator', hint: 'write `&&`' };
    case '|':
      return { message: '`|` is not an operator', hint: 'write `||`' };
    case '+':
    case '-':
    case '/':
    case '%':
      return {
        message: `there is no arithmetic in expressions: \`${sign}\``,
        hint: 'compute it in a `run` step',
      };
    case '*':
      return { message: '`*` is not supported in expressions', hint: 'pick items in a `run` step' };
    default:
      if (/\d/.test(sign))
        return { message: 'this is not a number', hint: 'an item of a list is read with `[0]`' };
      return { message: `${JSON.stringify(sign)} has no meaning in an expression` };
  }
}
