import { RepriseError } from '../../core/errors.ts';
import { canonicalJson, type Json } from '../../core/json.ts';
import { fingerprintOfText } from '../fingerprint.ts';
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
  type StepDefinition,
  type StepHandle,
  stepKey,
  toSelector,
} from './handle.ts';
import { OptionReader, type Retry, type Timeout } from './rules.ts';

/** What every kind of step can be told. */
export interface StepOptions<A extends After, Input> {
  /** The steps that come first, each under the name by which this one reads its output. */
  readonly after?: A | undefined;
  /** What this step expects of the run's input: only its type is used, the workflow's own `input` does the checking. */
  readonly input?: Schema<Input> | undefined;
  /** A pure function; `false` skips the step and what depends on it. */
  readonly if?: Select<A, Input, boolean> | undefined;
  readonly timeout?: Timeout | undefined;
}

/** What steps that do work can be told on top. */
export interface WorkOptions<A extends After, Input> extends StepOptions<A, Input> {
  readonly retry?: Retry | undefined;
  /** Its failure does not fail the run; what depends on it is skipped. */
  readonly optional?: boolean | undefined;
}

/** Whatever the dependencies are. */
interface AnyOptions extends Omit<WorkOptions<never, never>, 'after' | 'input'> {
  readonly after?: After | undefined;
}

/** Functions get the options, so that one will do for all steps of a kind. */
interface StepParts<Options extends AnyOptions> {
  readonly id: string;
  readonly options: Options;
  readonly reader: OptionReader;
  readonly body: (dependencies: readonly Dependency[], options: Options) => Body;
  readonly fanOut?: ((dependencies: readonly Dependency[]) => FanOut | undefined) | undefined;
  readonly budget?: SpendingLimit | undefined;
  readonly place?: WorkPlace | undefined;
  /** What the body adds to the fingerprint, in an order that does not depend on how it was written. */
  readonly describe: (options: Options) => string;
}

const idPattern = /^[A-Za-z_][A-Za-z0-9_-]*$/;

export const optionReader = (id: string): OptionReader => new OptionReader('step', id);

/** Makes a handle. Throws nothing: what is wrong is kept for `workflow` to report. */
export function buildStep<Output, Input, Options extends AnyOptions>(
  parts: StepParts<Options>,
): StepHandle<Output, Input> {
  const { id, options, reader } = parts;
  if (typeof id !== 'string' || !idPattern.test(id)) {
    reader.problem('this is not a valid id', 'letters, digits, _ and -, beginning with a letter or _');
  }
  const retry = reader.retry(options.retry);
  const timeout = reader.timeout(options.timeout);
  const dependencies = readDependencies(options.after, { reader, option: 'after' });
  return new DefinedHandle(id, new DefinedStep(parts, { retry, timeout, dependencies }));
}

/**
 * Handles and models are classes because there may be many: a literal with a getter or a computed key costs far more.
 * Their fields are declared only, since one that is defined is written twice.
 */
class DefinedHandle {
  declare readonly id: string;
  declare readonly [stepKey]: StepDefinition;

  constructor(id: string, definition: StepDefinition) {
    this.id = id;
    this[stepKey] = definition;
  }
}

interface ReadOptions {
  readonly retry: RetryRule | undefined;
  readonly timeout: TimeoutRule;
  readonly dependencies: readonly Dependency[];
}

/** A model and its definition in one. As a model it shows nothing of the definition. */
class DefinedStep<Options extends AnyOptions> implements StepModel, StepDefinition {
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
  /** Of steps that may get another body; the others let go of it. */
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

  /** Not kept: hardly anybody asks twice. */
  get fingerprint(): string {
    return fingerprintOfText(this.#description());
  }

  /**
   * Functions count as their text; what they close over does not. Put together by hand: a resume wants the
   * fingerprint of every step that ran, and JSON of all this would take twice as long.
   */
  #description(): string {
    const needs = describeDependencies(this.#dependencies);
    return `${this.id}\0${this.body.kind}\0${needs}\0${this.#rules()}\0${this.#describe(this.#options)}`;
  }

  /** What was said beyond the body; most steps say nothing. */
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

/** A promise is always truthy, so an `async` condition would be a condition that never skips. */
function toCondition(id: string, select: Selector<boolean>): Selector<boolean> {
  return scope => {
    const answer: unknown = select(scope);
    if (typeof answer === 'boolean') return answer;
    throw new RepriseError(
      'EXPRESSION_FAILED',
      `the condition of step "${id}" gave ${describeAnswer(answer)} instead of true or false`,
      {
        hint: '`if` takes a synchronous function that returns a boolean',
      },
    );
  };
}

const describeAnswer = (answer: unknown): string =>
  answer instanceof Promise ? 'a promise' : `a value of type ${typeof answer}`;

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

/** Options as one text for the fingerprint: functions count as theirs, and the order of keys does not matter. */
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
