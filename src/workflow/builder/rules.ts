import type { ErrorData } from '../../core/errors.ts';
import { type Duration, parseDuration } from '../../core/time.ts';
import type { RetryRule, SpendingLimit, TimeoutRule } from '../model.ts';
import type { Problem } from '../problems.ts';

/** The number of attempts in all, or more exactly when and how to try again. */
export type Retry = number | RetryOptions;

export interface RetryOptions {
  /** In all, the first one included. */
  readonly attempts: number;
  /** A duration waits equally long each time; the default begins with a second and doubles up to five minutes. */
  readonly backoff?: Duration | BackoffOptions | undefined;
  /** Codes or class names of the errors to try again after, or a pure function; every error by default. */
  readonly on?: readonly string[] | ((error: ErrorData) => boolean) | undefined;
}

export interface BackoffOptions {
  readonly initial: Duration;
  /** What each wait is multiplied by for the next; 2 by default. */
  readonly factor?: number | undefined;
  /** Five minutes by default. */
  readonly max?: Duration | undefined;
}

/** For each attempt, or for attempts and for the step as a whole. */
export type Timeout = Duration | TimeoutOptions;

export interface TimeoutOptions {
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
