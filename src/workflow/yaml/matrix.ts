import { RepriseError } from '../../core/errors.ts';
import { isJsonObject, type Json, type JsonObject } from '../../core/json.ts';
import type { VisibleMatrix } from '../expression/check.ts';
import { axisNames, expandMatrix, type MatrixFault, matrixFaults } from '../matrix.ts';
import type { FanOut } from '../model.ts';
import { compileValue, isConstant } from './compile/expressions.ts';
import type { BodySite } from './site.ts';
import type { Path } from './source/yaml-source.ts';

/** The keys that the templates of a step may read, from what was written: damage is reported elsewhere. */
export function visibleMatrix({ strategy }: JsonObject): VisibleMatrix {
  const anything = { kind: 'some', known: undefined } as const;
  if (strategy === undefined) return noMatrix;
  if (!isJsonObject(strategy)) return anything;
  const { matrix } = strategy;
  if (matrix === undefined) return noMatrix;
  return { kind: 'some', known: knownKeys(matrix) };
}

const noMatrix: VisibleMatrix = { kind: 'none', because: 'this step has no `strategy.matrix`' };

/** `undefined` if more of them may turn up when it runs. */
function knownKeys(matrix: Json): ReadonlySet<string> | undefined {
  const combinations = Array.isArray(matrix)
    ? matrix
    : isJsonObject(matrix)
      ? (matrix['include'] ?? [])
      : undefined;
  if (!Array.isArray(combinations)) return undefined;
  const maps = combinations.filter(isJsonObject);
  if (maps.length < combinations.length) return undefined;
  return new Set([
    ...(isJsonObject(matrix) ? axisNames(matrix) : []),
    ...maps.flatMap(map => Object.keys(map)),
  ]);
}

/** A `strategy.matrix`. What can be said about it before it runs is said now. */
export function compileMatrix(matrix: Json, path: Path, site: BodySite): FanOut['items'] {
  const faults = matrixFaults(matrix, isTemplate);
  for (const fault of faults) report(fault, path, site);
  const unnamed = isJsonObject(matrix) ? axisNames(matrix).filter(key => !/^[A-Za-z_][\w-]*$/.test(key)) : [];
  for (const key of unnamed) {
    const message = `\`${key}\` cannot be read as \`matrix.<key>\``;
    const hint = 'use letters, digits, `_` and `-`';
    site.problems.add(site.source, { path: [...path, key], atKey: true, message, hint });
  }
  if (faults.length === 0 && isConstant(matrix) && expandMatrix(matrix).length === 0) {
    site.problems.add(site.source, { path, atKey: true, message: 'the matrix has no combination' });
  }
  const value = compileValue(matrix, path, site);
  return scope => {
    const computed = value(site.surroundings(scope));
    const [fault] = matrixFaults(computed);
    if (fault) throw cannotExpand(fault, matrix);
    return expandMatrix(computed);
  };
}

const isTemplate = (value: Json): boolean => typeof value === 'string' && !isConstant(value);

const nameOf = (path: MatrixFault['path']): string =>
  `\`strategy.matrix${path.map(key => (typeof key === 'number' ? `[${key}]` : `.${key}`)).join('')}\``;

function report(
  { path: inner, message, hint }: MatrixFault,
  path: Path,
  { source, problems }: BodySite,
): void {
  problems.add(source, { path: [...path, ...inner], message: `${nameOf(inner)} ${message}`, hint });
}

function cannotExpand({ path, message, hint }: MatrixFault, written: Json): RepriseError {
  const template = templateAt(written, path);
  const from = template === undefined ? '' : `; it comes from ${template}`;
  return new RepriseError('EXPRESSION_FAILED', `${nameOf(path)} ${message}${from}`, { hint });
}

/** The template that a value came from: the innermost text on the way to it. */
function templateAt(written: Json, path: MatrixFault['path']): string | undefined {
  let current: Json | undefined = written;
  for (const key of path) {
    if (typeof current === 'string') break;
    if (Array.isArray(current)) current = (current as readonly Json[])[Number(key)];
    else current = isJsonObject(current) ? current[String(key)] : undefined;
  }
  return typeof current === 'string' ? current : undefined;
}
