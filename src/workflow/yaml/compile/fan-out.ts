import { isJsonObject, type Json, type JsonObject, RepriseError } from '../../../core/index.ts';
import type { VisibleMatrix } from '../../expression/check.ts';
import {
  axisNames,
  countCombinations,
  expandMatrix,
  type MatrixFault,
  matrixFaults,
  maxCopies,
} from '../../matrix.ts';
import type { FailurePolicy, FanOut, Judge, SelectRule, WorkflowModel } from '../../model.ts';
import type { StepDefinition, StepKind } from '../schema.ts';
import type { Path } from '../source/yaml-source.ts';
import { type BodySite, compileText, compileValue, isConstant, withoutMatrix } from './expressions.ts';
import { compileCommand, compileCommands } from './work.ts';

interface FanOutDefinition {
  readonly kind: StepKind;
  readonly definition: StepDefinition;
  readonly written: JsonObject;
}

/** Compiles `concurrency`, `strategy` and `select`. Returns `undefined` for a step without copies. */
export function compileFanOut(parts: FanOutDefinition, whole: BodySite): FanOut | undefined {
  const { definition } = parts;
  const site = withoutMatrix(whole, 'this is evaluated once for all copies of the step');
  const { concurrency, strategy, select: selection } = definition;
  checkKeys(parts, site);
  const select = selection && compileSelect(selection, definition, site);
  const shared = {
    ...(strategy?.['max-parallel'] === undefined ? {} : { maxParallel: strategy['max-parallel'] }),
    onFailure: policyOf(strategy, select ? 'continue' : 'fail-fast'),
    ...(select ? { select } : {}),
  };
  if (strategy?.matrix !== undefined) {
    const { matrix } = strategy;
    const items = compileMatrix(matrix, [...site.path, 'strategy', 'matrix'], site);
    const known = isConstant(matrix) ? { copies: countCombinations(matrix) } : {};
    return { kind: 'matrix', items, ...known, ...shared };
  }
  if (concurrency === undefined || concurrency < 2) return undefined;
  const copies = (): readonly JsonObject[] => Array.from({ length: concurrency }, () => ({}));
  return { kind: 'concurrency', items: copies, copies: concurrency, ...shared };
}

/** Reports a step whose copies each run a workflow with too many copies. */
export function checkNestedCopies(fanOut: FanOut, child: WorkflowModel, site: BodySite): void {
  const outer = fanOut.copies ?? 1;
  const inner = mostCopies(child);
  if (outer > maxCopies || inner > maxCopies || outer * inner <= maxCopies) return;
  site.problems.add(site.source, {
    path: [...site.path, 'uses'],
    message: `${outer} copies of this step, each with up to ${inner} copies of a step, are ${outer * inner} copies; at most ${maxCopies} are allowed`,
    hint: 'reduce `concurrency` or the matrix of one of them',
  });
}

/** Returns the largest number of copies of a step of a workflow, as far as it is known. Nested fan-outs multiply. */
function mostCopies({ steps }: WorkflowModel): number {
  const counts = steps.map(
    ({ fanOut, body }) => (fanOut?.copies ?? 1) * (body.kind === 'uses' ? mostCopies(body.workflow) : 1),
  );
  return counts.reduce((most, count) => Math.max(most, count), 1);
}

function policyOf(strategy: StepDefinition['strategy'], fallback: FailurePolicy): FailurePolicy {
  const { 'fail-fast': failFast, on_failure: policy } = strategy ?? {};
  if (policy !== undefined) return policy;
  return failFast === undefined ? fallback : failFast ? 'fail-fast' : 'continue';
}

/** Checks the keys as written, so that an invalid key is not also reported as missing. */
function checkKeys({ kind, definition, written }: FanOutDefinition, site: BodySite): void {
  const { concurrency, strategy } = definition;
  const { path, source, problems } = site;
  const has = (key: string): boolean => Object.hasOwn(written, key);
  if (strategy?.matrix !== undefined && has('concurrency')) {
    problems.add(source, {
      path: [...path, 'concurrency'],
      atKey: true,
      message: '`concurrency` (identical copies) and `strategy.matrix` (different copies) cannot be combined',
      hint: 'to limit the number of parallel copies, write `strategy: { max-parallel: N }`',
    });
  }
  if (concurrency !== undefined && concurrency > maxCopies) {
    problems.add(source, {
      path: [...path, 'concurrency'],
      message: `\`concurrency\` must be at most ${maxCopies}, not \`${concurrency}\``,
    });
  }
  if (strategy && strategy.matrix === undefined && !has('concurrency')) {
    problems.add(source, {
      path: [...path, 'strategy'],
      atKey: true,
      message: '`strategy` has no effect, because the step has no copies',
      hint: 'add `strategy.matrix` or `concurrency`',
    });
  }
  if (strategy?.['fail-fast'] !== undefined && strategy.on_failure !== undefined) {
    problems.add(source, {
      path: [...path, 'strategy', 'fail-fast'],
      atKey: true,
      message: '`fail-fast` and `on_failure` set the same policy',
      hint: 'remove one of them',
    });
  }
  const fansOut = strategy?.matrix !== undefined || (concurrency ?? 0) > 1;
  const isUnclear = (has('concurrency') && concurrency === undefined) || (has('strategy') && !strategy);
  // For `uses`, `kindOf` already reports `select` as not allowed.
  if (has('select') && kind !== 'uses' && !fansOut && !isUnclear) {
    problems.add(source, {
      path: [...path, 'select'],
      atKey: true,
      message: '`select` picks one of several copies, but this step has no copies',
      hint: 'add `concurrency: 3` or a `strategy.matrix`',
    });
  }
}

type SelectDefinition = NonNullable<StepDefinition['select']>;

function compileSelect(
  select: SelectDefinition,
  { shell, workspace }: StepDefinition,
  site: BodySite,
): SelectRule {
  const { gates, rank, judge } = select;
  const path = [...site.path, 'select'];
  const object = (key: string, message: string, hint?: string): void =>
    site.problems.add(site.source, { path: [...path, key], atKey: true, message, hint });
  if (gates === undefined && rank === undefined && judge === undefined) {
    const hint =
      'add `gates` (commands that must pass), `rank` (a command that prints a number) or `judge` (an agent)';
    site.problems.add(site.source, { path, message: '`select` does not define how to pick a copy', hint });
  }
  if (rank !== undefined && judge !== undefined)
    object('judge', '`rank` and `judge` both pick the best copy', 'remove one of them');
  if (workspace === 'none') {
    for (const key of ['gates', 'rank'] as const) {
      if (select[key] === undefined) continue;
      object(key, `\`${key}\` needs the workspace of each copy, but \`workspace: none\` creates none`);
    }
  }
  return {
    gates: compileCommands(gates, [...path, 'gates'], site, { shell }),
    ...(rank === undefined ? {} : { rank: compileCommand(rank, [...path, 'rank'], site, { shell }) }),
    ...(judge === undefined ? {} : { judge: compileJudge(judge, site) }),
  };
}

function compileJudge(judge: NonNullable<SelectDefinition['judge']>, site: BodySite): Judge {
  const { source } = site;
  const path = [...site.path, 'select', 'judge'];
  const isName = typeof judge === 'string';
  const { agent, prompt } = isName ? { agent: judge, prompt: undefined } : judge;
  const text = prompt === undefined ? undefined : compileText(prompt, [...path, 'prompt'], site);
  return {
    agent,
    ...(text ? { prompt: scope => text(site.evaluationContext(scope)) } : {}),
    position: source.positionOf(source.rangeOf(isName ? path : [...path, 'agent']).start),
  };
}

/** Returns the matrix keys that a step may read. Uses the definition as written: its errors are reported elsewhere. */
export function visibleMatrix({ strategy }: JsonObject): VisibleMatrix {
  const anything = { kind: 'some', known: undefined } as const;
  if (strategy === undefined) return noMatrix;
  if (!isJsonObject(strategy)) return anything;
  const { matrix } = strategy;
  if (matrix === undefined) return noMatrix;
  return { kind: 'some', known: knownKeys(matrix) };
}

const noMatrix: VisibleMatrix = { kind: 'none', because: 'this step has no `strategy.matrix`' };

/** Returns `undefined` if the matrix may have more keys at run time. */
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

/** Compiles a `strategy.matrix` and reports every problem that is known before the run. */
function compileMatrix(matrix: Json, path: Path, site: BodySite): FanOut['items'] {
  const faults = matrixFaults(matrix, isTemplate);
  for (const fault of faults) report(fault, path, site);
  const unnamed = isJsonObject(matrix) ? axisNames(matrix).filter(key => !/^[A-Za-z_][\w-]*$/.test(key)) : [];
  for (const key of unnamed) {
    const message = `the matrix key \`${key}\` cannot be read as \`matrix.<key>\``;
    const hint = 'use letters, digits, `_` and `-`';
    site.problems.add(site.source, { path: [...path, key], atKey: true, message, hint });
  }
  if (faults.length === 0 && isConstant(matrix) && expandMatrix(matrix).length === 0) {
    site.problems.add(site.source, { path, atKey: true, message: 'the matrix has no combinations' });
  }
  const value = compileValue(matrix, path, site);
  return scope => {
    const computed = value(site.evaluationContext(scope));
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
  const from = template === undefined ? '' : `; the value comes from ${template}`;
  return new RepriseError('EXPRESSION_FAILED', `${nameOf(path)} ${message}${from}`, { hint });
}

/** Returns the template that produced a value: the innermost text on the path to it. */
function templateAt(written: Json, path: MatrixFault['path']): string | undefined {
  let current: Json | undefined = written;
  for (const key of path) {
    if (typeof current === 'string') break;
    if (Array.isArray(current)) current = (current as readonly Json[])[Number(key)];
    else current = isJsonObject(current) ? current[String(key)] : undefined;
  }
  return typeof current === 'string' ? current : undefined;
}
