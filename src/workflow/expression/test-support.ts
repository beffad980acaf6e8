import { expect } from 'vitest';
import type { Json } from '../../core/json.ts';
import type { Scope } from '../model.ts';
import { evaluate } from './evaluate.ts';
import { parseExpression } from './parse.ts';

export interface Given {
  readonly inputs?: Json;
  readonly steps?: Json;
  readonly env?: Json;
  readonly matrix?: Json;
  readonly status?: Scope['status'];
}

/** Parses and evaluates an expression. */
export function resultOf(text: string, given: Given = {}): Json {
  const parsed = parseExpression(text);
  expect(parsed).toMatchObject({ kind: 'expression' });
  if (parsed.kind !== 'expression') throw new Error(parsed.fault.message);
  return evaluate(parsed.expression, {
    status: given.status ?? 'success',
    read: context => given[context] ?? {},
  });
}
