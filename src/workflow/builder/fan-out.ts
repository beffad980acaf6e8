import { isJsonObject, type Json, type JsonObject, RepriseError, toJson } from '../../core/index.ts';
import { maxCopies } from '../matrix.ts';
import {
  type FailurePolicy,
  type FanOut,
  failurePolicies,
  type Selector,
  type SelectRule,
} from '../model.ts';
import { describeOptions } from './build.ts';
import { type After, type Dependency, type Select, toSelector } from './handle.ts';
import { type CommandMaker, commandsOf, type OptionReader } from './rules.ts';

/** Options that run a step as several copies. */
export interface FanOutOptions<A extends After, Input, Copies extends number, Item extends object> {
  /** Number of identical copies, at most 10,000. 0 or 1 means no fan-out. */
  readonly concurrency?: Copies | undefined;
  /** Items, or a pure function that returns them. Each item gets its own copy of the step. */
  readonly matrix?: readonly Item[] | Select<A, Input, readonly Item[]> | undefined;
  /** Maximum number of copies that run in parallel. */
  readonly maxParallel?: number | undefined;
  /** What happens to the other copies when one fails. Defaults to `fail-fast`, and with `select` to `continue`. */
  readonly onFailure?: FailurePolicy | undefined;
}

/** Rules for picking the best copy. */
export interface SelectOptions<A extends After, Input> {
  /** Commands that must pass in the workspace of a copy for it to be picked. */
  readonly gates?: readonly string[] | undefined;
  /** Command that prints a score as its last line. The copy with the highest score wins. */
  readonly rank?: string | undefined;
  /** Agent that compares the copies and picks one. */
  readonly judge?: string | JudgeOptions<A, Input> | undefined;
}

export interface JudgeOptions<A extends After, Input> {
  readonly agent: string;
  /** Criteria for the choice. */
  readonly prompt?: string | Select<A, Input, string> | undefined;
}

/** Fan-out options with any dependencies. */
export interface AnyFanOut {
  readonly concurrency?: number | undefined;
  readonly matrix?: readonly object[] | Select<never, never, readonly object[]> | undefined;
  readonly maxParallel?: number | undefined;
  readonly onFailure?: FailurePolicy | undefined;
  readonly select?: SelectOptions<never, never> | undefined;
}

export const fansOut = ({ concurrency = 1, matrix }: AnyFanOut): boolean =>
  matrix !== undefined || concurrency > 1;

interface FanOutContext {
  readonly id: string;
  readonly dependencies: readonly Dependency[];
  /** Creates the commands of `select`. */
  readonly command?: CommandMaker | undefined;
}

/** Returns `undefined` for a step without copies. */
export function readFanOut(options: AnyFanOut, parts: FanOutContext): FanOut | undefined {
  if (!fansOut(options)) return undefined;
  const { maxParallel, select, matrix, concurrency = 1 } = options;
  const rule = select && selectRule(select, parts);
  return {
    kind: matrix ? 'matrix' : 'concurrency',
    items: matrix
      ? itemsOf(matrix, parts)
      : (): readonly JsonObject[] => Array.from({ length: concurrency }, () => ({})),
    maxParallel,
    onFailure: options.onFailure ?? (rule ? 'continue' : 'fail-fast'),
    select: rule,
  };
}

/** Like `readFanOut`, for steps without commands. Returns `undefined` for a step without copies. */
export const fanOutReader = (id: string, options: AnyFanOut) =>
  fansOut(options)
    ? (dependencies: readonly Dependency[]) => readFanOut(options, { id, dependencies })
    : undefined;

function itemsOf(
  matrix: NonNullable<AnyFanOut['matrix']>,
  { id, dependencies }: FanOutContext,
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
  { dependencies, command }: FanOutContext,
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

/** Describes the fan-out for the fingerprint. Empty for a step without copies. */
export function describeFanOut(options: AnyFanOut): string {
  const { concurrency, matrix, maxParallel, onFailure, select } = options;
  return fansOut(options) ? describeOptions({ concurrency, matrix, maxParallel, onFailure, select }) : '';
}

/** Reports invalid and contradictory options. */
export function checkFanOut(options: AnyFanOut, reader: OptionReader): void {
  const { concurrency, matrix, maxParallel, onFailure, select } = options;
  reader.count('concurrency', concurrency, 0);
  reader.count('maxParallel', maxParallel, 1);
  if (concurrency !== undefined && concurrency > maxCopies)
    reader.problem(`\`concurrency\` must be at most ${maxCopies}, not ${concurrency}`);
  if (concurrency !== undefined && matrix !== undefined)
    reader.problem(
      '`concurrency` and `matrix` cannot be combined',
      'remove one of them; to limit the number of parallel copies, use `maxParallel`',
    );
  if (matrix !== undefined && typeof matrix !== 'function') {
    if (!Array.isArray(matrix) || !matrix.every(isJsonObject))
      reader.problem(
        '`matrix` must be a list of objects',
        'add one object for each copy, such as [{ file: "a.md" }]',
      );
    else if (matrix.length === 0) reader.problem('`matrix` is empty');
    else if (matrix.length > maxCopies)
      reader.problem(`\`matrix\` must have at most ${maxCopies} items, not ${matrix.length}`);
  }
  reader.oneOf('onFailure', onFailure, failurePolicies);
  if (select) checkSelect(select, fansOut(options), reader);
}

function checkSelect(select: SelectOptions<never, never>, isMany: boolean, reader: OptionReader): void {
  const { gates, rank, judge } = select;
  if (!isMany)
    reader.problem(
      '`select` picks one of several copies, but this step has no copies',
      'add `concurrency: 3` or a `matrix`',
    );
  if (rank !== undefined && judge !== undefined)
    reader.problem('`rank` and `judge` both pick the best copy', 'remove one of them');
  if (gates === undefined && rank === undefined && judge === undefined)
    reader.problem('`select` does not define how to pick a copy', 'add `gates`, `rank` or `judge`');
}
