import { canonicalJson, type Json, RepriseError } from '../../core/index.ts';
import { fingerprintOfText } from '../graph.ts';
import type {
  Body,
  FanOut,
  Need,
  RetryRule,
  Selector,
  SpendingLimit,
  StepModel,
  TimeoutRule,
} from '../model.ts';
import type { Problem } from '../problems.ts';
import type { WorkPlace } from '../workspace-rules.ts';
import {
  type After,
  type Dependency,
  needsOf,
  readDependencies,
  type Schema,
  type Select,
  type StepBlueprint,
  type StepHandle,
  stepKey,
  toSelector,
} from './handle.ts';
import { OptionReader, type Retry, type Timeout } from './rules.ts';

/** Options of every kind of step. */
export interface StepOptions<A extends After, Input> {
  /** Dependencies, each under the name by which this step reads its output. */
  readonly after?: A | undefined;
  /** Schema that provides the type of the run's input. The `input` of the workflow does the validation. */
  readonly input?: Schema<Input> | undefined;
  /** Pure function. If it returns `false`, the step and all that depends on it are skipped. */
  readonly if?: Select<A, Input, boolean> | undefined;
  readonly timeout?: Timeout | undefined;
}

/** Additional options of steps that do work. */
export interface WorkOptions<A extends After, Input> extends StepOptions<A, Input> {
  readonly retry?: Retry | undefined;
  /** If true, a failure of this step does not fail the run. Steps that depend on it are skipped. */
  readonly optional?: boolean | undefined;
}

/** Options with any dependencies. */
interface AnyOptions extends Omit<WorkOptions<never, never>, 'after' | 'input'> {
  readonly after?: After | undefined;
}

/** The functions receive the options, so that all steps of a kind can share them. */
interface StepParts<Options extends AnyOptions> {
  readonly id: string;
  readonly options: Options;
  readonly reader: OptionReader;
  readonly body: (dependencies: readonly Dependency[], options: Options) => Body;
  readonly fanOut?: ((dependencies: readonly Dependency[]) => FanOut | undefined) | undefined;
  readonly budget?: SpendingLimit | undefined;
  readonly place?: WorkPlace | undefined;
  /** Describes the body for the fingerprint. Must not depend on the order of keys. */
  readonly describe: (options: Options) => string;
}

const idPattern = /^[A-Za-z_][A-Za-z0-9_-]*$/;

export const optionReader = (id: string): OptionReader => new OptionReader('step', id);

/** Creates a handle. Never throws: `workflow` reports the problems. */
export function buildStep<Output, Input, Options extends AnyOptions>(
  parts: StepParts<Options>,
): StepHandle<Output, Input> {
  const { id, options, reader } = parts;
  if (typeof id !== 'string' || !idPattern.test(id)) {
    reader.problem('the id is not valid', 'use letters, digits, _ and -, and start with a letter or _');
  }
  const retry = reader.retry(options.retry);
  const timeout = reader.timeout(options.timeout);
  const dependencies = readDependencies(options.after, { reader, option: 'after' });
  return new DefinedHandle(id, new DefinedStep(parts, { retry, timeout, dependencies }));
}

/**
 * Handles and models are classes, because a workflow may have many, and object literals with a getter or a computed
 * key cost far more. Fields are only declared, because a defined field would be written twice.
 */
class DefinedHandle {
  declare readonly id: string;
  declare readonly [stepKey]: StepBlueprint;

  constructor(id: string, definition: StepBlueprint) {
    this.id = id;
    this[stepKey] = definition;
  }
}

interface ReadOptions {
  readonly retry: RetryRule | undefined;
  readonly timeout: TimeoutRule;
  readonly dependencies: readonly Dependency[];
}

/** Model and definition in one object. Private fields keep the definition out of the model. */
class DefinedStep<Options extends AnyOptions> implements StepModel, StepBlueprint {
  declare readonly id: string;
  declare readonly needs: readonly Need[];
  declare readonly condition: Selector<boolean> | undefined;
  declare readonly optional: boolean;
  declare readonly retry: RetryRule | undefined;
  declare readonly timeout: TimeoutRule;
  declare readonly budget: SpendingLimit | undefined;
  declare readonly fanOut: FanOut | undefined;
  declare readonly body: Body;
  readonly #dependencies: readonly Dependency[];
  readonly #problems: readonly Problem[];
  /** Parts of a step whose body may be replaced. Other steps drop them to save memory. */
  readonly #parts: StepParts<Options> | undefined;
  readonly #options: Options;
  readonly #describe: (options: Options) => string;

  constructor(parts: StepParts<Options>, { retry, timeout, dependencies }: ReadOptions, placed?: Body) {
    const { id, options, body } = parts;
    this.id = id;
    this.needs = needsOf(dependencies);
    this.condition = options.if && toCondition(id, toSelector(dependencies, options.if));
    this.optional = options.optional ?? false;
    this.retry = retry;
    this.timeout = timeout;
    this.budget = parts.budget;
    this.fanOut = parts.fanOut?.(dependencies);
    this.body = placed ?? body(dependencies, options);
    this.#dependencies = dependencies;
    this.#problems = parts.reader.problems;
    this.#parts = parts.place && parts;
    this.#options = options;
    this.#describe = parts.describe;
  }

  get model(): this {
    return this;
  }

  get place(): WorkPlace | undefined {
    return this.#parts?.place;
  }

  get dependencies(): readonly Dependency[] {
    return this.#dependencies;
  }

  get problems(): readonly Problem[] {
    return this.#problems;
  }

  withBody(body: Body): StepModel {
    return this.#parts ? new DefinedStep(this.#parts, this, body) : this;
  }

  /** Computed on every read, because it is rarely read twice. */
  get fingerprint(): string {
    return fingerprintOfText(this.#description());
  }

  /**
   * Represents a function by its source text, without the variables that it closes over. Builds the text by hand: a
   * resume needs the fingerprint of every step that ran, and JSON would take twice as long.
   */
  #description(): string {
    const needs = describeDependencies(this.#dependencies);
    return `${this.id}\0${this.body.kind}\0${needs}\0${this.#rules()}\0${this.#describe(this.#options)}`;
  }

  /** Describes the options besides the body. Empty for most steps. */
  #rules(): string {
    const { optional, retry, timeout } = this;
    const options = this.#options;
    if (!options.if && !optional && !retry && options.timeout === undefined) return '';
    const rules: Json[] = [];
    if (options.if) rules.push(['if', String(options.if)]);
    if (optional) rules.push('optional');
    if (retry) rules.push(['retry', retry.attempts, retry.backoff, describeRetried(options.retry)]);
    if (options.timeout !== undefined)
      rules.push(['timeout', timeout.attemptMs ?? null, timeout.stepMs ?? null, ...stalls(timeout)]);
    return JSON.stringify(rules);
  }
}

const stalls = ({ stallMs }: TimeoutRule): readonly number[] => (stallMs === undefined ? [] : [stallMs]);

/** Rejects anything but a boolean. The promise of an `async` condition is truthy and would never skip. */
function toCondition(id: string, select: Selector<boolean>): Selector<boolean> {
  return scope => {
    const result: unknown = select(scope);
    if (typeof result === 'boolean') return result;
    throw new RepriseError(
      'EXPRESSION_FAILED',
      `the condition of step "${id}" returned ${describeResult(result)} instead of true or false`,
      {
        hint: '`if` takes a synchronous function that returns a boolean',
      },
    );
  };
}

const describeResult = (result: unknown): string =>
  result instanceof Promise ? 'a promise' : `a value of type ${typeof result}`;

function describeDependencies(dependencies: readonly Dependency[]): string {
  const first = dependencies[0];
  if (first && dependencies.length === 1) return describeDependency(first);
  return dependencies.map(describeDependency).sort().join();
}

const describeDependency = ({ alias, id, tolerant }: Dependency): string =>
  `${alias}=${id}${tolerant ? '?' : ''}`;

function describeRetried(retry: Retry | undefined): Json {
  const on = typeof retry === 'object' ? retry.on : undefined;
  return typeof on === 'function' ? String(on) : (on ?? null);
}

/** Describes options for the fingerprint. Represents functions by their source text and ignores the order of keys. */
export const describeOptions = (options: object): string => canonicalJson(describe(options));

function describe(value: unknown): Json {
  if (typeof value === 'function') return String(value);
  if (Array.isArray(value)) return value.map(describe);
  if (typeof value !== 'object' || value === null) return (value as Json | undefined) ?? null;
  return Object.fromEntries(
    Object.entries(value)
      .filter(([, field]) => field !== undefined)
      .map(([key, field]) => [key, describe(field)]),
  );
}
