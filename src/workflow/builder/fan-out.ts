import { RepriseError } from '../../core/errors.ts';
import { isJsonObject, type Json, type JsonObject, toJson } from '../../core/json.ts';
import {
  type FailurePolicy,
  type FanOut,
  failurePolicies,
  type Selector,
  type SelectRule,
} from '../model.ts';
import { describeOptions } from './build.ts';
import { type CommandMaker, commandsOf } from './commands.ts';
import { type After, type Dependency, type Select, toSelector } from './handle.ts';
import type { OptionReader } from './rules.ts';

/** What makes many copies of one step. */
export interface FanOutOptions<A extends After, Input, Copies extends number, Item extends object> {
  /** How many identical copies run. 0 and 1 are an ordinary step. */
  readonly concurrency?: Copies | undefined;
  /** One copy for each item, which it is given; a pure function, or the items themselves. */
  readonly matrix?: readonly Item[] | Select<A, Input, readonly Item[]> | undefined;
  /** How many copies may run at the same time. */
  readonly maxParallel?: number | undefined;
  /** What happens to the other copies when one fails: `fail-fast` by default, and `continue` with `select`. */
  readonly onFailure?: FailurePolicy | undefined;
}

/** How the best copy is picked. */
export interface SelectOptions<A extends After, Input> {
  /** Commands that must pass in the workspace of a copy. */
  readonly gates?: readonly string[] | undefined;
  /** A command whose last line is a number; the copy with the highest wins. */
  readonly rank?: string | undefined;
  /** An agent that compares the copies and picks one. */
  readonly judge?: string | JudgeOptions<A, Input> | undefined;
}

export interface JudgeOptions<A extends After, Input> {
  readonly agent: string;
  /** What to look for. */
  readonly prompt?: string | Select<A, Input, string> | undefined;
}

/** Whatever the dependencies are. */
export interface AnyFanOut {
  readonly concurrency?: number | undefined;
  readonly matrix?: readonly object[] | Select<never, never, readonly object[]> | undefined;
  readonly maxParallel?: number | undefined;
  readonly onFailure?: FailurePolicy | undefined;
  readonly select?: SelectOptions<never, never> | undefined;
}

export const fansOut = ({ concurrency = 1, matrix }: AnyFanOut): boolean =>
  matrix !== undefined || concurrency > 1;

interface FanOutParts {
  readonly id: string;
  readonly dependencies: readonly Dependency[];
  /** For the commands of a selection. */
  readonly command?: CommandMaker | undefined;
}

/** `undefined` for an ordinary step. */
export function readFanOut(options: AnyFanOut, parts: FanOutParts): FanOut | undefined {
  if (!fansOut(options)) return undefined;
  const { maxParallel, select, matrix, concurrency = 1 } = options;
  const rule = select && selectRule(select, parts);
  const copies: readonly JsonObject[] = Array.from({ length: matrix ? 0 : concurrency }, () => ({}));
  return {
    kind: matrix ? 'matrix' : 'concurrency',
    items: matrix ? itemsOf(matrix, parts) : () => copies,
    maxParallel,
    onFailure: options.onFailure ?? (rule ? 'continue' : 'fail-fast'),
    select: rule,
  };
}

/** For steps that need no commands; `undefined` for an ordinary one. */
export const fanOutReader = (id: string, options: AnyFanOut) =>
  fansOut(options)
    ? (dependencies: readonly Dependency[]) => readFanOut(options, { id, dependencies })
    : undefined;

function itemsOf(
  matrix: NonNullable<AnyFanOut['matrix']>,
  { id, dependencies }: FanOutParts,
): Selector<readonly JsonObject[]> {
  const select = typeof matrix === 'function' ? toSelector(dependencies, matrix) : () => matrix;
  return scope => {
    const given: Json = toJson(select(scope), 'matrix');
    if (Array.isArray(given) && given.every(isJsonObject)) return given;
    throw new RepriseError('EXPRESSION_FAILED', `the matrix of step "${id}" is not a list of objects`, {
      hint: 'return one object for each copy, such as [{ file: "a.md" }]',
    });
  };
}

function selectRule(
  { gates, rank, judge }: NonNullable<AnyFanOut['select']>,
  { dependencies, command }: FanOutParts,
): SelectRule {
  const { agent, prompt } = typeof judge === 'object' ? judge : { agent: judge, prompt: undefined };
  return {
    gates: command ? commandsOf(gates, command) : [],
    rank: rank === undefined || !command ? undefined : command(rank),
    judge: agent === undefined ? undefined : { agent, prompt: promptOf(prompt, dependencies) },
  };
}

function promptOf(
  prompt: JudgeOptions<never, never>['prompt'],
  dependencies: readonly Dependency[],
): Selector<string> | undefined {
  if (prompt === undefined) return undefined;
  return typeof prompt === 'function' ? toSelector(dependencies, prompt) : () => prompt;
}

/** For the fingerprint; nothing for an ordinary step. */
export function describeFanOut(options: AnyFanOut): string {
  const { concurrency, matrix, maxParallel, onFailure, select } = options;
  return fansOut(options) ? describeOptions({ concurrency, matrix, maxParallel, onFailure, select }) : '';
}

/** Reports what cannot go together. */
export function checkFanOut(options: AnyFanOut, reader: OptionReader): void {
  const { concurrency, matrix, maxParallel, onFailure, select } = options;
  reader.count('concurrency', concurrency, 0);
  reader.count('maxParallel', maxParallel, 1);
  if (concurrency !== undefined && matrix !== undefined)
    reader.problem(
      'it has both `concurrency` and `matrix`',
      'keep one; `maxParallel` limits how many run at once',
    );
  if (matrix !== undefined && typeof matrix !== 'function') {
    if (!Array.isArray(matrix) || !matrix.every(isJsonObject))
      reader.problem('`matrix` is not a list of objects', 'one for each copy, such as [{ file: "a.md" }]');
    else if (matrix.length === 0) reader.problem('`matrix` is empty');
  }
  if (onFailure !== undefined && !failurePolicies.includes(onFailure))
    reader.problem(`onFailure is ${JSON.stringify(onFailure)}`, `one of ${failurePolicies.join(', ')}`);
  if (select) checkSelect(select, fansOut(options), reader);
}

function checkSelect(select: SelectOptions<never, never>, isMany: boolean, reader: OptionReader): void {
  const { gates, rank, judge } = select;
  if (!isMany)
    reader.problem('`select` picks from several copies, and this step has one', 'add `concurrency: 3`');
  if (rank !== undefined && judge !== undefined)
    reader.problem('`rank` and `judge` both pick the best copy', 'keep one of them');
  if (gates === undefined && rank === undefined && judge === undefined)
    reader.problem('`select` does not say how to pick', 'add `gates`, `rank` or `judge`');
}
