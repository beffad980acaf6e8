type Token = Span &
  (
    | { readonly kind: 'number'; readonly value: number }
    | { readonly kind: 'string'; readonly value: string }
    | { readonly kind: 'name'; readonly text: string }
    | { readonly kind: 'sign'; readonly text: string }
    | { readonly kind: 'end' }
  );

/** Never leaves this module: `parseExpression` catches it. */
class ExpressionFault extends Error {
  readonly fault: ParseFault;

  constructor(fault: ParseFault) {
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

/** Far more than anyone writes by hand. The limit keeps the tree from overflowing the stack. */
const maxTokens = 2000;

/** Splits `text` into tokens whose offsets count from `base`. Throws ExpressionFault. */
function tokenise(text: string, base: number): readonly Token[] {
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
        message: `the expression has more than ${maxTokens} tokens`,
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

/** After a value, `.` reads a property and `-` would be arithmetic, so neither starts a number. */
function endsValue(token: Token | undefined): boolean {
  if (token?.kind === 'sign') return token.text === ')' || token.text === ']';
  return token !== undefined;
}

function explain(text: string, at: number): Omit<ParseFault, keyof Span> {
  const sign = String.fromCodePoint(text.codePointAt(at) ?? 0);
  switch (sign) {
    case "'":
      return {
        message: 'the text has no closing quote',
        hint: "double a quote inside the text: 'it''s'",
      };
    case '"':
    case '`':
      return { message: `${sign} does not quote text in an expression`, hint: "use single quotes: 'text'" };
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
        message: `expressions have no arithmetic: \`${sign}\``,
        hint: 'compute the value in a `run` step',
      };
    case '*':
      return { message: '`*` is not supported in expressions', hint: 'select the items in a `run` step' };
    default:
      if (/\d/.test(sign))
        return { message: 'this is not a number', hint: 'read an item of a list with `[0]`' };
      return { message: `unexpected character ${JSON.stringify(sign)} in an expression` };
  }
}

/** Range in the scalar, as UTF-16 offsets. The end is exclusive. */
export interface Span {
  readonly start: number;
  readonly end: number;
}

/** An error in an expression, with its range in the scalar. */
export interface ParseFault extends Span {
  readonly message: string;
  readonly hint?: string | undefined;
}

const binaryOperators = ['||', '&&', '==', '!=', '<', '<=', '>', '>='] as const;
type BinaryOperator = (typeof binaryOperators)[number];

export type Expression = Literal | ContextName | PropertyAccess | Index | Call | Not | Binary;

interface Literal extends Span {
  readonly kind: 'literal';
  readonly value: null | boolean | number | string;
}

/** The first name of a chain of properties, such as `steps`. */
interface ContextName extends Span {
  readonly kind: 'context';
  readonly name: string;
}

interface PropertyAccess extends Span {
  readonly kind: 'property';
  readonly target: Expression;
  readonly name: string;
}

interface Index extends Span {
  readonly kind: 'index';
  readonly target: Expression;
  readonly index: Expression;
}

export interface Call extends Span {
  readonly kind: 'call';
  readonly name: string;
  readonly args: readonly Expression[];
}

interface Not extends Span {
  readonly kind: 'not';
  readonly operand: Expression;
}

export interface Binary extends Span {
  readonly kind: 'binary';
  readonly operator: BinaryOperator;
  readonly left: Expression;
  readonly right: Expression;
}

/** Returns the direct children of an expression. */
export function childrenOf(expression: Expression): readonly Expression[] {
  switch (expression.kind) {
    case 'literal':
    case 'context':
      return [];
    case 'property':
      return [expression.target];
    case 'index':
      return [expression.target, expression.index];
    case 'call':
      return expression.args;
    case 'not':
      return [expression.operand];
    case 'binary':
      return [expression.left, expression.right];
  }
}

type Parsed =
  | { readonly kind: 'expression'; readonly expression: Expression }
  | { readonly kind: 'fault'; readonly fault: ParseFault };

/** Parses the text between `${{` and `}}`. Offsets in the result count from `base`. Never throws. */
export function parseExpression(text: string, base = 0): Parsed {
  try {
    return { kind: 'expression', expression: new ExpressionParser(tokenise(text, base)).whole() };
  } catch (error) {
    if (error instanceof ExpressionFault) return { kind: 'fault', fault: error.fault };
    throw error;
  }
}

const bindingPower: Readonly<Record<BinaryOperator, number>> = {
  '||': 1,
  '&&': 2,
  '==': 3,
  '!=': 3,
  '<': 4,
  '<=': 4,
  '>': 4,
  '>=': 4,
};
const keywords: ReadonlyMap<string, null | boolean> = new Map([
  ['null', null],
  ['true', true],
  ['false', false],
]);
const maxDepth = 100;

class ExpressionParser {
  readonly #tokens: readonly Token[];
  #next = 0;
  #depth = 0;

  constructor(tokens: readonly Token[]) {
    this.#tokens = tokens;
  }

  whole(): Expression {
    if (this.#peek().kind === 'end') throw fault(this.#peek(), 'the expression is empty');
    const expression = this.#binary(0);
    if (this.#peek().kind !== 'end') throw this.#unexpected('an operator or the end');
    return expression;
  }

  #binary(power: number): Expression {
    let left = this.#unary();
    for (;;) {
      const operator = this.#binaryOperator();
      if (operator === undefined || bindingPower[operator] <= power) return left;
      this.#next++;
      const right = this.#binary(bindingPower[operator]);
      left = { kind: 'binary', operator, left, right, start: left.start, end: right.end };
    }
  }

  #binaryOperator(): BinaryOperator | undefined {
    const token = this.#peek();
    return token.kind === 'sign' ? binaryOperators.find(operator => operator === token.text) : undefined;
  }

  #unary(): Expression {
    const token = this.#peek();
    if (++this.#depth > maxDepth)
      throw fault(token, `the expression is nested deeper than ${maxDepth} levels`);
    const expression = this.#accept('!') ? this.#negated(token) : this.#postfix(this.#primary());
    this.#depth--;
    return expression;
  }

  #negated(sign: Token): Expression {
    const operand = this.#unary();
    return { kind: 'not', operand, start: sign.start, end: operand.end };
  }

  #primary(): Expression {
    const token = this.#peek();
    if (this.#accept('(')) {
      const inner = this.#binary(0);
      const close = this.#expect(')');
      return { ...inner, start: token.start, end: close.end };
    }
    const { start, end } = token;
    switch (token.kind) {
      case 'number':
      case 'string':
        this.#next++;
        return { kind: 'literal', value: token.value, start, end };
      case 'name': {
        this.#next++;
        if (this.#accept('(')) return this.#call(token.text, token);
        const value = keywords.get(token.text.toLowerCase());
        return value === undefined
          ? { kind: 'context', name: token.text, start, end }
          : { kind: 'literal', value, start, end };
      }
      case 'sign':
      case 'end':
        throw this.#unexpected('a value');
    }
  }

  #call(name: string, { start }: Span): Expression {
    const args: Expression[] = [];
    if (!this.#isSign(')')) {
      do args.push(this.#binary(0));
      while (this.#accept(','));
    }
    return { kind: 'call', name, args, start, end: this.#expect(')').end };
  }

  #postfix(primary: Expression): Expression {
    let target = primary;
    for (;;) {
      if (this.#accept('.')) {
        const name = this.#peek();
        if (name.kind !== 'name') throw this.#unexpected('the name of a property');
        this.#next++;
        target = { kind: 'property', target, name: name.text, start: target.start, end: name.end };
      } else if (this.#accept('[')) {
        const index = this.#binary(0);
        target = { kind: 'index', target, index, start: target.start, end: this.#expect(']').end };
      } else {
        return target;
      }
    }
  }

  #peek(): Token {
    const token = this.#tokens[this.#next] ?? this.#tokens.at(-1);
    if (!token) throw new Error('the token list must end with an `end` token');
    return token;
  }

  #isSign(text: string): boolean {
    const token = this.#peek();
    return token.kind === 'sign' && token.text === text;
  }

  #accept(text: string): boolean {
    const found = this.#isSign(text);
    if (found) this.#next++;
    return found;
  }

  #expect(text: string): Token {
    const token = this.#peek();
    if (!this.#accept(text)) throw this.#unexpected(`\`${text}\``);
    return token;
  }

  #unexpected(wanted: string): ExpressionFault {
    const token = this.#peek();
    return fault(token, `expected ${wanted}, found ${describe(token)}`);
  }
}

function describe(token: Token): string {
  switch (token.kind) {
    case 'end':
      return 'the end of the expression';
    case 'number':
      return `the number ${token.value}`;
    case 'string':
      return `the text '${token.value}'`;
    case 'name':
    case 'sign':
      return `\`${token.text}\``;
  }
}

const fault = ({ start, end }: Span, message: string) => new ExpressionFault({ message, start, end });
