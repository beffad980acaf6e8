import { RepriseError } from '../../core/errors.ts';
import type { Json } from '../../core/json.ts';
import type { Scope } from '../model.ts';
import type { Binary, Expression } from './ast.ts';
import { functionNamed, member } from './functions.ts';
import { compare, isEqual, isTruthy } from './values.ts';

export const contextNames = ['inputs', 'steps', 'env', 'matrix'] as const;
export type KnownContext = (typeof contextNames)[number];

export const isKnownContext = (name: string): name is KnownContext =>
  contextNames.some(known => known === name);

/** What an expression can see while it is evaluated. */
export interface Surroundings {
  readonly read: (context: KnownContext) => Json;
  readonly status: Scope['status'];
}

/** The value of a checked expression. Throws EXPRESSION_FAILED where a function cannot go on. */
export function evaluate(expression: Expression, surroundings: Surroundings): Json {
  switch (expression.kind) {
    case 'literal':
      return expression.value;
    case 'context':
      return readContext(expression.name, surroundings);
    case 'property':
      return member(evaluate(expression.target, surroundings), expression.name);
    case 'index':
      return member(evaluate(expression.target, surroundings), evaluate(expression.index, surroundings));
    case 'call': {
      const args = expression.args.map(argument => evaluate(argument, surroundings));
      const known = functionNamed(expression.name);
      if (!known) throw new RepriseError('EXPRESSION_FAILED', `there is no function \`${expression.name}\``);
      return known.call(args, surroundings.status);
    }
    case 'not':
      return !isTruthy(evaluate(expression.operand, surroundings));
    case 'binary':
      return evaluateBinary(expression, surroundings);
  }
}

function readContext(name: string, surroundings: Surroundings): Json {
  if (isKnownContext(name)) return surroundings.read(name);
  throw new RepriseError('EXPRESSION_FAILED', `there is no context \`${name}\``);
}

function evaluateBinary({ operator, left, right }: Binary, surroundings: Surroundings): Json {
  const first = evaluate(left, surroundings);
  // The two that may not need their right side, and give an operand instead of a boolean.
  if (operator === '&&') return isTruthy(first) ? evaluate(right, surroundings) : first;
  if (operator === '||') return isTruthy(first) ? first : evaluate(right, surroundings);
  const second = evaluate(right, surroundings);
  switch (operator) {
    case '==':
      return isEqual(first, second);
    case '!=':
      return !isEqual(first, second);
    case '<':
      return (compare(first, second) ?? 0) < 0;
    case '<=':
      return (compare(first, second) ?? 1) <= 0;
    case '>':
      return (compare(first, second) ?? 0) > 0;
    case '>=':
      return (compare(first, second) ?? -1) >= 0;
  }
}
