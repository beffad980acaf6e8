import { isJsonObject, type Json } from '../../../core/json.ts';
import type { Expression, Fault } from '../../expression/ast.ts';
import { checkExpression, type Visible } from '../../expression/check.ts';
import { parseCondition, readsStatus } from '../../expression/condition.ts';
import { evaluate, type Surroundings } from '../../expression/evaluate.ts';
import { evaluateTemplate, openingMark, parseTemplate } from '../../expression/template.ts';
import { isTruthy, toText } from '../../expression/values.ts';
import type { ProblemList } from '../source/problem-list.ts';
import type { Path, YamlSource } from '../source/yaml-source.ts';

/** A value that is known once an expression can be evaluated. */
export type Compiled<T> = (surroundings: Surroundings) => T;

/** Where templates stand: what they may name, and where their problems go. */
export interface Site {
  readonly source: YamlSource;
  readonly problems: ProblemList;
  readonly visible: Visible;
}

export function reportUnknownNames(
  expression: Expression,
  path: Path,
  { source, problems, visible }: Site,
): void {
  problems.addFaults(source, path, checkExpression(expression, visible));
}

/** A scalar as text. */
export function compileText(text: string, path: Path, site: Site): Compiled<string> {
  const value = compileScalar(text, path, site);
  return surroundings => toText(value(surroundings));
}

/** A JSON value in which any text may be a template. */
export function compileValue(value: Json, path: Path, site: Site): Compiled<Json> {
  if (typeof value === 'string') return compileScalar(value, path, site);
  if (Array.isArray(value)) {
    const items = value.map((item: Json, index) => compileValue(item, [...path, index], site));
    return surroundings => items.map(item => item(surroundings));
  }
  if (!isJsonObject(value)) return () => value;
  const fields = Object.entries(value).map(
    ([key, field]) => [key, compileValue(field, [...path, key], site)] as const,
  );
  return surroundings => Object.fromEntries(fields.map(([key, field]) => [key, field(surroundings)]));
}

/** Whether a value is the same whatever the run does. */
export function isConstant(value: Json): boolean {
  if (typeof value === 'string') return !value.includes(openingMark);
  return typeof value !== 'object' || value === null || Object.values(value).every(isConstant);
}

function compileScalar(text: string, path: Path, site: Site): Compiled<Json> {
  const { faults, value } = compileTemplate(text, site.visible);
  site.problems.addFaults(site.source, path, faults);
  return value;
}

/** Text with `${{ }}` in it, wherever it comes from. */
export function compileTemplate(
  text: string,
  visible: Visible,
): { readonly faults: readonly Fault[]; readonly value: Compiled<Json> } {
  if (!text.includes(openingMark)) return { faults: [], value: () => text };
  const template = parseTemplate(text);
  const unknown = template.parts.flatMap(part =>
    typeof part === 'string' ? [] : checkExpression(part, visible),
  );
  return {
    faults: [...template.faults, ...unknown],
    value: surroundings => evaluateTemplate(template, surroundings),
  };
}

interface CompiledCondition {
  readonly test: Compiled<boolean>;
  /** It looks at how the steps before ended, so it is asked whatever that was. */
  readonly readsStatus: boolean;
}

/** An `if:`. Without a status function in it, `success()` is implied. */
export function compileCondition(
  condition: string | boolean,
  path: Path,
  site: Site,
): CompiledCondition | undefined {
  const parsed = parseCondition(String(condition));
  if (parsed.kind === 'faults') {
    site.problems.addFaults(site.source, path, parsed.faults);
    return undefined;
  }
  const { expression } = parsed;
  reportUnknownNames(expression, path, site);
  const isStatusRead = readsStatus(expression);
  return {
    readsStatus: isStatusRead,
    test: surroundings =>
      (isStatusRead || surroundings.status === 'success') && isTruthy(evaluate(expression, surroundings)),
  };
}
