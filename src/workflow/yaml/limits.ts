import { parseDuration } from '../../core/time.ts';
import type { RetryRule, SpendingLimit, TimeoutRule } from '../model.ts';
import type { StepDefinition } from './schema.ts';
import type { Complaint } from './source/problem-list.ts';
import type { Path } from './source/yaml-source.ts';

const defaults = { initialMs: 1000, factor: 2, maxMs: 300_000 } as const;

/** What `retry` says; one attempt needs no rule. */
export function compileRetry(retry: StepDefinition['retry']): RetryRule | undefined {
  if (retry === undefined) return undefined;
  if (typeof retry === 'number') return { attempts: retry, backoff: defaults };
  const { attempts, backoff, on } = retry;
  const retries: RetryRule['retries'] =
    on && (({ code, name }) => on.includes(code) || (name !== undefined && on.includes(name)));
  return { attempts, backoff: compileBackoff(backoff), ...(retries ? { retries } : {}) };
}

type Backoff = Exclude<StepDefinition['retry'], number | undefined>['backoff'];

function compileBackoff(backoff: Backoff): RetryRule['backoff'] {
  if (backoff === undefined) return defaults;
  if (typeof backoff === 'string') {
    const delayMs = milliseconds(backoff);
    return { initialMs: delayMs, factor: 1, maxMs: delayMs };
  }
  const initialMs = backoff.initial === undefined ? defaults.initialMs : milliseconds(backoff.initial);
  const maxMs = backoff.max === undefined ? Math.max(initialMs, defaults.maxMs) : milliseconds(backoff.max);
  return { initialMs, factor: backoff.factor ?? defaults.factor, maxMs };
}

interface CompiledTimeout {
  readonly rule: TimeoutRule;
  readonly complaints: readonly Complaint[];
}

const ruleOf = ({ attemptMs, stepMs, stallMs }: TimeoutRule): TimeoutRule => ({
  ...(attemptMs === undefined ? {} : { attemptMs }),
  ...(stepMs === undefined ? {} : { stepMs }),
  ...(stallMs === undefined ? {} : { stallMs }),
});

/** What agents may use up; `undefined` if nothing limits it. */
export function compileSpending(budget: Spending | undefined): SpendingLimit | undefined {
  const { cost_usd: costUsd, tokens } = budget ?? {};
  if (costUsd === undefined && tokens === undefined) return undefined;
  return { ...(costUsd === undefined ? {} : { costUsd }), ...(tokens === undefined ? {} : { tokens }) };
}

interface Spending {
  readonly cost_usd?: number | undefined;
  readonly tokens?: number | undefined;
}

/** What `timeout`, `timeout-minutes` and `budget.minutes` say. A gate has no attempts: whatever limits it limits the step. */
export function compileTimeout(definition: StepDefinition, path: Path): CompiledTimeout {
  const { timeout, 'timeout-minutes': minutes } = definition;
  const { attempt, step, stall } =
    typeof timeout === 'string' ? { attempt: timeout, step: undefined, stall: undefined } : (timeout ?? {});
  const complaints: Complaint[] = [];
  if (minutes !== undefined && step !== undefined) {
    const message = '`timeout-minutes` and `timeout.step` say the same thing';
    complaints.push({ path: [...path, 'timeout-minutes'], atKey: true, message, hint: 'keep one of them' });
  }
  const read = (duration: string | undefined, key: Path): number | undefined => {
    if (duration === undefined) return undefined;
    const ms = milliseconds(duration);
    if (ms === 0)
      complaints.push({ path: [...path, 'timeout', ...key], message: 'a timeout must be longer than 0' });
    return ms;
  };
  const attemptMs = read(attempt, typeof timeout === 'string' ? [] : ['attempt']);
  const wholeMinutes = minutes ?? definition.budget?.minutes;
  const stepMs = read(step, ['step']) ?? (wholeMinutes === undefined ? undefined : wholeMinutes * 60_000);
  const stallMs = read(stall, ['stall']);
  if (stallMs !== undefined && definition.agent === undefined) {
    const message = '`timeout.stall` limits the silence of an agent, and this step has none';
    complaints.push({ path: [...path, 'timeout', 'stall'], atKey: true, message });
  }
  if (definition.approve !== undefined) return { rule: ruleOf({ stepMs: stepMs ?? attemptMs }), complaints };
  return { rule: ruleOf({ attemptMs, stepMs, stallMs }), complaints };
}

/** The schema has let only durations through. */
const milliseconds = (duration: string): number => parseDuration(duration) ?? 0;
