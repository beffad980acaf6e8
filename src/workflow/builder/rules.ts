import type { ErrorData } from '../../core/errors.ts';
import { type Duration, parseDuration } from '../../core/time.ts';
import { type DagNode, type GraphProblem, graphProblems, indexById } from '../graph.ts';
import type { RetryRule, SpendingLimit, TimeoutRule } from '../model.ts';
import type { Problem } from '../problems.ts';
import { type AnyStep, type Dependency, isStep, needsOf, stepKey } from './handle.ts';

/** The number of attempts in all, or more exactly when and how to try again. */
export type Retry = number | RetryOptions;

interface RetryOptions {
  /** In all, the first one included. */
  readonly attempts: number;
  /** A duration waits equally long each time; the default begins with a second and doubles up to five minutes. */
  readonly backoff?: Duration | BackoffOptions | undefined;
  /** Codes or class names of the errors to try again after, or a pure function; every error by default. */
  readonly on?: readonly string[] | ((error: ErrorData) => boolean) | undefined;
}

interface BackoffOptions {
  readonly initial: Duration;
  /** What each wait is multiplied by for the next; 2 by default. */
  readonly factor?: number | undefined;
  /** Five minutes by default. */
  readonly max?: Duration | undefined;
}

/** For each attempt, or for attempts and for the step as a whole. */
export type Timeout = Duration | TimeoutOptions;

interface TimeoutOptions {
  readonly attempt?: Duration | undefined;
  /** From the first start to the end, retries and waits included. */
  readonly step?: Duration | undefined;
  /** How long an agent may be silent. */
  readonly stall?: Duration | undefined;
}

/** What a step, or a run, may use up. */
export interface Budget {
  /** What agents may cost, in US dollars. */
  readonly costUsd?: number | undefined;
  /** How many tokens agents may read and write. */
  readonly tokens?: number | undefined;
  /** Wall time. */
  readonly minutes?: number | undefined;
}

const defaultBackoff = { initialMs: 1000, factor: 2, maxMs: 300_000 } as const;

const noProblems: readonly Problem[] = [];
const noLimits: TimeoutRule = {};

/** Reads option values and keeps what is wrong with them; a wrong value becomes a harmless one. */
export class OptionReader {
  readonly #kind: 'step' | 'workflow';
  readonly #name: string;
  #problems: Problem[] | undefined;

  constructor(kind: 'step' | 'workflow', name: string) {
    this.#kind = kind;
    this.#name = name;
  }

  get problems(): readonly Problem[] {
    return this.#problems ?? noProblems;
  }

  problem(message: string, hint?: string): void {
    const place = `${this.#kind} ${JSON.stringify(this.#name) ?? String(this.#name)}`;
    this.#problems ??= [];
    this.#problems.push({ message: `${place}: ${message}`, hint });
  }

  retry(retry: Retry | undefined): RetryRule | undefined {
    if (retry === undefined) return undefined;
    const { attempts, backoff, on } = typeof retry === 'number' ? { attempts: retry } : retry;
    if (!Number.isInteger(attempts) || attempts < 1) {
      this.problem(
        `retry of ${show(attempts)} attempts`,
        'a whole number from 1, which counts the first attempt too',
      );
    }
    const retries = typeof on === 'object' ? (error: ErrorData) => namesError(on, error) : on;
    return { attempts, backoff: this.#backoff(backoff), retries };
  }

  timeout(timeout: Timeout | undefined): TimeoutRule {
    if (timeout === undefined) return noLimits;
    const { attempt, step, stall }: TimeoutOptions =
      typeof timeout === 'object' ? timeout : { attempt: timeout };
    return {
      attemptMs: attempt === undefined ? undefined : this.#positive('timeout', attempt),
      stepMs: step === undefined ? undefined : this.#positive('timeout', step),
      ...(stall === undefined ? {} : { stallMs: this.#positive('timeout.stall', stall) }),
    };
  }

  /** Without the minutes, which are a limit like that of `timeout`. */
  spending(budget: Budget | undefined): SpendingLimit | undefined {
    if (budget === undefined) return undefined;
    for (const name of ['costUsd', 'tokens', 'minutes'] as const) {
      const value = budget[name];
      if (value !== undefined && !(Number.isFinite(value) && value > 0))
        this.problem(`budget.${name} is ${show(value)}`, 'a number above 0');
    }
    const { costUsd, tokens } = budget;
    return costUsd === undefined && tokens === undefined ? undefined : { costUsd, tokens };
  }

  /** A whole number. */
  count(option: string, value: number | undefined, minimum: number): void {
    if (value === undefined || (Number.isInteger(value) && value >= minimum)) return;
    this.problem(`${option} is ${show(value)}`, `a whole number from ${minimum}`);
  }

  someText(option: string, value: unknown): void {
    if (typeof value !== 'string') this.problem(`${option} is not a text`);
    else if (value.trim() === '') this.problem(`${option} is empty`);
  }

  #positive(option: string, duration: Duration): number {
    const ms = this.#duration(option, duration);
    if (ms === 0) this.problem(`${option} is ${show(duration)}`, 'it must be longer than nothing');
    return ms ?? 0;
  }

  #backoff(backoff: Duration | BackoffOptions | undefined): RetryRule['backoff'] {
    if (backoff === undefined) return defaultBackoff;
    if (typeof backoff !== 'object') {
      const ms = this.#duration('retry.backoff', backoff) ?? 0;
      return { initialMs: ms, factor: 1, maxMs: ms };
    }
    const { initial, factor = defaultBackoff.factor, max } = backoff;
    const initialMs = this.#duration('retry.backoff.initial', initial) ?? 0;
    const maxMs =
      max === undefined
        ? Math.max(initialMs, defaultBackoff.maxMs)
        : (this.#duration('retry.backoff.max', max) ?? initialMs);
    if (!Number.isFinite(factor) || factor < 1) {
      this.problem(`retry.backoff.factor is ${show(factor)}`, 'a number from 1 up');
    }
    if (maxMs < initialMs) {
      this.problem(`retry.backoff.max (${show(max)}) is shorter than initial (${show(initial)})`);
    }
    return { initialMs, factor, maxMs };
  }

  #duration(option: string, duration: Duration): number | undefined {
    const known = typeof duration === 'number' || typeof duration === 'string';
    const ms = known ? parseDuration(duration) : undefined;
    if (ms === undefined) {
      this.problem(
        `${option} is ${show(duration)}, which is not a duration`,
        'milliseconds, or a text such as "30s" or "1h30m"',
      );
    }
    return ms;
  }
}

/** The minutes of a budget limit the step as a whole, unless its timeout says how. */
export function withMinutes(timeout: Timeout | undefined, budget: Budget | undefined): Timeout | undefined {
  if (budget?.minutes === undefined) return timeout;
  const written: TimeoutOptions = typeof timeout === 'object' ? timeout : { attempt: timeout };
  return { ...written, step: written.step ?? budget.minutes * 60_000 };
}

const namesError = (names: readonly string[], { code, name }: ErrorData): boolean =>
  names.includes(code) || (name !== undefined && names.includes(name));

const show = (value: unknown): string => (typeof value === 'string' ? JSON.stringify(value) : String(value));

interface StepsToCheck {
  readonly workflow: string;
  readonly steps: readonly unknown[];
  readonly output: readonly Dependency[];
}

/** What is wrong with the steps of a workflow: each for itself, then how they hang together, then its output. */
export function stepProblems({ workflow, steps: listed, output }: StepsToCheck): readonly Problem[] {
  if (!Array.isArray(listed) || listed.length === 0) {
    return [
      { message: `workflow "${workflow}": it has no steps`, hint: 'list them: steps: [first, second]' },
    ];
  }
  const sound = ifSound(listed);
  if (sound)
    return output
      .filter(({ step }) => sound.get(step.id) !== step)
      .map(dependency => missingOutput(workflow, dependency));
  const steps = listed.filter(isStep);
  const indexes = indexById(steps);
  const { nodes, namesakes } = withoutNamesakes(steps, indexes);
  return [
    ...(steps.length < listed.length ? notSteps(workflow, listed) : []),
    ...steps.filter(hasProblems).flatMap(step => step[stepKey].problems),
    ...namesakes,
    ...graphProblems(nodes, indexes).map(problem => explain(workflow, problem)),
    ...output
      .filter(({ step }) => lookUp(step, steps, indexes) !== 'listed')
      .map(dependency => missingOutput(workflow, dependency)),
  ];
}

/**
 * The steps by their ids, if nothing is wrong with any of them and each comes after others above it only. Nearly always
 * so, and seen at one look, where to find out what is wrong takes many.
 */
function ifSound(listed: readonly unknown[]): ReadonlyMap<string, AnyStep> | undefined {
  const above = new Map<string, AnyStep>();
  for (const step of listed) {
    if (!isStep(step) || hasProblems(step)) return undefined;
    for (const dependency of step[stepKey].dependencies)
      if (above.get(dependency.id) !== dependency.step) return undefined;
    const before = above.size;
    if (above.set(step.id, step).size === before) return undefined;
  }
  return above;
}

const hasProblems = (step: AnyStep): boolean => step[stepKey].problems.length > 0;

type Indexes = ReadonlyMap<string, number>;

/**
 * Whether the step is in the list, or else another one of its id.
 * Several steps of one id are a problem by themselves, so the list is searched only when things are wrong already.
 */
function lookUp(
  step: AnyStep,
  steps: readonly AnyStep[],
  indexes: Indexes,
): 'listed' | 'namesake' | 'unknown' {
  const index = indexes.get(step.id);
  if (index === undefined) return 'unknown';
  return steps[index] === step || steps.includes(step, index) ? 'listed' : 'namesake';
}

/**
 * Ids alone do not show that a dependency is another step than the listed one of the same id. The graph is looked at
 * without these namesakes: they would look like steps that wait for themselves.
 */
function withoutNamesakes(
  steps: readonly AnyStep[],
  indexes: Indexes,
): { readonly nodes: readonly DagNode[]; readonly namesakes: readonly Problem[] } {
  const isNamesake = ({ step }: Dependency) => lookUp(step, steps, indexes) === 'namesake';
  const namesakes: Problem[] = [];
  const nodes = steps.map((step): DagNode => {
    const { dependencies, model } = step[stepKey];
    if (!dependencies.some(isNamesake)) return model;
    namesakes.push(...dependencies.filter(isNamesake).map(({ step: other }) => mixedUp(step, other)));
    return { id: step.id, needs: needsOf(dependencies.filter(dependency => !isNamesake(dependency))) };
  });
  return { nodes, namesakes };
}

function notSteps(workflow: string, listed: readonly unknown[]): Problem[] {
  return listed.flatMap((value, index) =>
    isStep(value)
      ? []
      : [
          {
            message: `workflow "${workflow}": steps[${index}] is not a step`,
            hint: 'list what step(), shell(), agent(), approve() or land() returned',
          },
        ],
  );
}

function explain(workflow: string, problem: GraphProblem): Problem {
  switch (problem.kind) {
    case 'duplicate-id':
      return {
        message: `workflow "${workflow}": steps[${problem.firstIndex}] and steps[${problem.index}] both have the id "${problem.id}"`,
        hint: 'rename or remove one of them',
      };
    case 'unknown-need':
      return {
        message: `step "${problem.id}" comes after step "${problem.need}", which is not in the steps of workflow "${workflow}"`,
        hint: `add "${problem.need}" to \`steps\`, or take it out of \`after\``,
      };
    case 'self-need':
      return { message: `step "${problem.id}" comes after itself` };
    case 'cycle':
      return {
        message: `steps wait for each other: ${problem.path.join(' -> ')}`,
        hint: 'remove one of these dependencies',
      };
  }
}

const mixedUp = (step: AnyStep, other: AnyStep): Problem => ({
  message: `step "${step.id}" comes after a step "${other.id}" that is not the "${other.id}" in \`steps\``,
  hint: 'give one of the two another id, and list both',
});

const missingOutput = (workflow: string, { alias, step }: Dependency): Problem => ({
  message: `workflow "${workflow}": output.${alias} comes from step "${step.id}", which is not in its steps`,
  hint: `add "${step.id}" to \`steps\`, or take it out of \`output\``,
});
