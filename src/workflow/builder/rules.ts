import { type Duration, type ErrorData, parseDuration } from '../../core/index.ts';
import { type DagNode, type GraphProblem, graphProblems, indexById } from '../graph.ts';
import type { Command, RetryRule, Selector, ShellCommand, SpendingLimit, TimeoutRule } from '../model.ts';
import type { Problem } from '../problems.ts';
import { type AnyStep, type Dependency, isStep, needsOf, stepKey } from './handle.ts';

/** Total number of attempts, or detailed rules for retries. */
export type Retry = number | RetryOptions;

interface RetryOptions {
  /** Total number of attempts, including the first. */
  readonly attempts: number;
  /** Fixed delay, or a growing one. Defaults to one second, doubled with every retry up to five minutes. */
  readonly backoff?: Duration | BackoffOptions | undefined;
  /** Codes or class names of the errors to retry, or a pure function. Defaults to all errors. */
  readonly on?: readonly string[] | ((error: ErrorData) => boolean) | undefined;
}

interface BackoffOptions {
  readonly initial: Duration;
  /** Factor by which the delay grows with every retry. Defaults to 2. */
  readonly factor?: number | undefined;
  /** Longest delay. Defaults to five minutes. */
  readonly max?: Duration | undefined;
}

/** Timeout of each attempt, or separate timeouts for attempts and for the whole step. */
export type Timeout = Duration | TimeoutOptions;

interface TimeoutOptions {
  readonly attempt?: Duration | undefined;
  /** Timeout of the whole step, including all attempts and delays. */
  readonly step?: Duration | undefined;
  /** Longest time that an agent may stay silent. */
  readonly stall?: Duration | undefined;
}

/** Limits on time, cost and tokens of a step or a run. */
export interface Budget {
  /** Maximum cost of all agents, in US dollars. */
  readonly costUsd?: number | undefined;
  /** Maximum number of input and output tokens of all agents. */
  readonly tokens?: number | undefined;
  /** Maximum wall time, in minutes. */
  readonly minutes?: number | undefined;
}

const defaultBackoff = { initialMs: 1000, factor: 2, maxMs: 300_000 } as const;

const noProblems: readonly Problem[] = [];
const noLimits: TimeoutRule = {};

/** Reads option values and collects problems. Replaces an invalid value with a harmless one. */
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
        `the number of attempts in retry must be a whole number of at least 1, not ${show(attempts)}`,
        'the first attempt counts too',
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

  /** Leaves out the minutes, which become a timeout. */
  spending(budget: Budget | undefined): SpendingLimit | undefined {
    if (budget === undefined) return undefined;
    for (const name of ['costUsd', 'tokens', 'minutes'] as const) {
      const value = budget[name];
      if (value !== undefined && !(Number.isFinite(value) && value > 0))
        this.problem(`budget.${name} must be greater than 0, not ${show(value)}`);
    }
    const { costUsd, tokens } = budget;
    return costUsd === undefined && tokens === undefined ? undefined : { costUsd, tokens };
  }

  /** Reports a value that is not a whole number of at least `minimum`. */
  count(option: string, value: number | undefined, minimum: number): void {
    if (value === undefined || (Number.isInteger(value) && value >= minimum)) return;
    this.problem(`${option} must be a whole number of at least ${minimum}, not ${show(value)}`);
  }

  /** Reports a value that is not one of `allowed`. */
  oneOf(option: string, value: string | undefined, allowed: readonly string[]): void {
    if (value === undefined || allowed.includes(value)) return;
    this.problem(`${option} must be one of ${allowed.join(', ')}, not ${show(value)}`);
  }

  someText(option: string, value: unknown): void {
    if (typeof value !== 'string') this.problem(`${option} must be a string`);
    else if (value.trim() === '') this.problem(`${option} is empty`);
  }

  #positive(option: string, duration: Duration): number {
    const ms = this.#duration(option, duration);
    if (ms === 0) this.problem(`${option} must be greater than 0, not ${show(duration)}`);
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
      this.problem(`retry.backoff.factor must be at least 1, not ${show(factor)}`);
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
        `${option} must be a duration, not ${show(duration)}`,
        'use milliseconds, or a string such as "30s" or "1h30m"',
      );
    }
    return ms;
  }
}

/** Turns the minutes of a budget into a timeout for the whole step, unless one is set. */
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

/** Returns the problems of single steps, then those of the graph, then those of the workflow's output. */
export function stepProblems({ workflow, steps: listed, output }: StepsToCheck): readonly Problem[] {
  if (!Array.isArray(listed) || listed.length === 0) {
    return [{ message: `workflow "${workflow}": it has no steps`, hint: 'add them: steps: [first, second]' }];
  }
  const validSteps = stepsIfValid(listed);
  if (validSteps)
    return output
      .filter(({ step }) => validSteps.get(step.id) !== step)
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
 * Returns the steps by id if all are valid and each depends only on steps above it. This fast path is the usual case
 * and takes a single pass. Finding out what is wrong takes many.
 */
function stepsIfValid(listed: readonly unknown[]): ReadonlyMap<string, AnyStep> | undefined {
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
 * Returns `listed` if the step is in the list, `namesake` if the list contains a different step with the same id.
 * Duplicate ids are an error of their own, so the list is only searched if the workflow is already invalid.
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
 * Reports dependencies on a step that is not the listed step with the same id. Removes them from the graph, where ids
 * alone would make them look like cycles.
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
            hint: 'list the results of step(), shell(), agent(), approve() or land()',
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
        message: `step "${problem.id}" depends on step "${problem.need}", which is not in the steps of workflow "${workflow}"`,
        hint: `add "${problem.need}" to \`steps\`, or remove it from \`after\``,
      };
    case 'self-need':
      return { message: `step "${problem.id}" depends on itself` };
    case 'cycle':
      return {
        message: `steps depend on each other in a cycle: ${problem.path.join(' -> ')}`,
        hint: 'remove one of these dependencies',
      };
  }
}

const mixedUp = (step: AnyStep, other: AnyStep): Problem => ({
  message: `step "${step.id}" depends on a step "${other.id}" that is not the "${other.id}" in \`steps\``,
  hint: 'change the id of one of the two, and list both',
});

const missingOutput = (workflow: string, { alias, step }: Dependency): Problem => ({
  message: `workflow "${workflow}": output.${alias} reads step "${step.id}", which is not in its steps`,
  hint: `add "${step.id}" to \`steps\`, or remove it from \`output\``,
});

/** Values of environment variables, by name. */
export type StepEnvironment = Readonly<Record<string, string | number | boolean>>;

export const toTexts = (environment: StepEnvironment): Record<string, string> =>
  Object.fromEntries(Object.entries(environment).map(([name, value]) => [name, String(value)]));

/** Creates a command that runs beside the main work of a step. */
export type CommandMaker = (text: string) => Command;

/** The text of a command is fixed. Values reach it through the environment of the step. */
export const commandMaker =
  (environment: Selector<StepEnvironment>, shell: ShellCommand['shell'] = 'bash'): CommandMaker =>
  text => ({
    text,
    command: scope => ({ script: text, shell, env: toTexts(environment(scope)) }),
  });

export const commandsOf = (texts: readonly string[] | undefined, command: CommandMaker): readonly Command[] =>
  (texts ?? []).map(command);
