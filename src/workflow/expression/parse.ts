import { type BinaryOperator, binaryOperators, type Expression, type Fault, type Span } from './ast.ts';
import { ExpressionFault, type Token, tokenise } from './tokens.ts';

export type Parsed =
  | { readonly kind: 'expression'; readonly expression: Expression }
  | { readonly kind: 'fault'; readonly fault: Fault };

/** Parses what stands between `${{` and `}}`. Offsets in the result count from `base`. Never throws. */
export function parseExpression(text: string, base = 0): Parsed {
  try {
    return { kind: 'expression', expression: new Parser(tokenise(text, base)).whole() };
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

class Parser {
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
    if (!token) throw new Error('a list of tokens ends with `end`');
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
