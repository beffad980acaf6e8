/** Where in the scalar something stands: offsets of UTF-16 units, the end excluded. */
export interface Span {
  readonly start: number;
  readonly end: number;
}

/** Something wrong with an expression, at its place in the scalar. */
export interface Fault extends Span {
  readonly message: string;
  readonly hint?: string | undefined;
}

export const binaryOperators = ['||', '&&', '==', '!=', '<', '<=', '>', '>='] as const;
export type BinaryOperator = (typeof binaryOperators)[number];

/** An expression as a tree. */
export type Expression = Literal | ContextName | Property | Index | Call | Not | Binary;

interface Literal extends Span {
  readonly kind: 'literal';
  readonly value: null | boolean | number | string;
}

/** The name that a chain of properties begins with, such as `steps`. */
interface ContextName extends Span {
  readonly kind: 'context';
  readonly name: string;
}

export interface Property extends Span {
  readonly kind: 'property';
  readonly target: Expression;
  readonly name: string;
}

export interface Index extends Span {
  readonly kind: 'index';
  readonly target: Expression;
  readonly index: Expression;
}

export interface Call extends Span {
  readonly kind: 'call';
  readonly name: string;
  readonly args: readonly Expression[];
}

export interface Not extends Span {
  readonly kind: 'not';
  readonly operand: Expression;
}

export interface Binary extends Span {
  readonly kind: 'binary';
  readonly operator: BinaryOperator;
  readonly left: Expression;
  readonly right: Expression;
}

/** The expressions directly inside one. */
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
