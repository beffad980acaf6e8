import { RepriseError } from '../../core/errors.ts';
import type { Json } from '../../core/json.ts';
import { fingerprintOf } from '../fingerprint.ts';
import type { Body, StepModel } from '../model.ts';
import { needsOf, readDependencies, type Select, toSelector } from './dependencies.ts';
import { type After, type Dependency, type StepHandle, stepKey } from './handle.ts';
import { OptionReader, type Retry, type Timeout } from './rules.ts';
import type { Schema } from './schema.ts';

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

export interface StepParts<A extends After, Input> {
  readonly id: string;
  readonly options: WorkOptions<A, Input>;
  readonly reader: OptionReader;
  readonly body: (dependencies: readonly Dependency[]) => Body;
  /** What the body adds to the fingerprint, in an order that does not depend on how it was written. */
  readonly describe: () => readonly Json[];
}

const idPattern = /^[A-Za-z_][A-Za-z0-9_-]*$/;

export const optionReader = (id: string): OptionReader =>
  new OptionReader(`step ${JSON.stringify(id) ?? String(id)}`);

/** Makes a handle. Throws nothing: what is wrong is kept for `workflow` to report. */
export function buildStep<Output, A extends After, Input>(
  parts: StepParts<A, Input>,
): StepHandle<Output, Input> {
  const { id, options, reader } = parts;
  if (typeof id !== 'string' || !idPattern.test(id)) {
    reader.problem('this is not a valid id', 'letters, digits, _ and -, beginning with a letter or _');
  }
  const { dependencies, problems } = readDependencies(options.after, `step ${JSON.stringify(id)}: after`);
  let fingerprint: string | undefined;
  const model: StepModel = {
    id,
    needs: needsOf(dependencies),
    condition: options.if && toCondition(id, toSelector(dependencies, options.if)),
    optional: options.optional ?? false,
    retry: reader.retry(options.retry),
    timeout: reader.timeout(options.timeout),
    body: parts.body(dependencies),
    get fingerprint() {
      fingerprint ??= fingerprintOf(describeStep(parts, { model, dependencies }));
      return fingerprint;
    },
  };
  return { id, [stepKey]: { model, dependencies, problems: [...reader.problems, ...problems] } };
}

/** A promise is always truthy, so an `async` condition would be a condition that never skips. */
function toCondition(
  id: string,
  select: NonNullable<StepModel['condition']>,
): NonNullable<StepModel['condition']> {
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

/**
 * Functions count as their text; what they close over does not.
 * One string in all: there may be many steps, and canonical JSON of a list costs several times as much.
 */
function describeStep<A extends After, Input>(
  { options, describe }: StepParts<A, Input>,
  { model, dependencies }: { readonly model: StepModel; readonly dependencies: readonly Dependency[] },
): string {
  const { id, optional, retry, timeout, body } = model;
  return JSON.stringify([
    id,
    body.kind,
    dependencies.map(({ alias, step, tolerant }) => `${alias}=${step.id}${tolerant ? '?' : ''}`).sort(),
    options.if ? String(options.if) : null,
    optional,
    retry ? [retry.attempts, retry.backoff, describeRetried(options.retry)] : null,
    timeout,
    describe(),
  ]);
}

function describeRetried(retry: Retry | undefined): Json {
  const on = typeof retry === 'object' ? retry.on : undefined;
  return typeof on === 'function' ? String(on) : (on ?? null);
}
