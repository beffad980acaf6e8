import type { CaseManifest } from '../../cases/manifest/index.ts';
import {
  type Duration,
  type ErrorData,
  type Json,
  nearest,
  parseDuration,
  RepriseError,
} from '../../core/index.ts';
import { definitionPath } from '../../engine/state/index.ts';
import { type FailurePolicy, failurePolicies } from '../../workflow/index.ts';

/**
 * Changes to a recorded case. Keys are `<command of the case>.<step of the workflow>`, such as `fix_readme.fix`, or
 * `fix_readme.fix:1` for a copy of a step. The first part may be left out if only one command of the case is `run`.
 */
export interface Override {
  /** Outputs of steps. The steps complete, even if they did not in the recording. */
  readonly outputs?: Readonly<Record<string, Json>> | undefined;
  /** Messages or errors of steps that fail in every attempt. */
  readonly failures?: Readonly<Record<string, string | ErrorData>> | undefined;
  /** Prompts of agents. The recorded replies belong to another prompt, so override `outputs` as well. */
  readonly prompts?: Readonly<Record<string, string>> | undefined;
  /** `on_failure` of all workflows, or by command of the case. */
  readonly policy?: FailurePolicy | Readonly<Record<string, FailurePolicy>> | undefined;
  readonly clock?: ClockOverride | undefined;
}

export interface ClockOverride {
  /** Start time of the case: a time such as `2026-02-28T23:59:00Z`, or milliseconds since the epoch. */
  readonly start?: string | number | undefined;
  /** Duration of each attempt, by step. Other steps take no time. */
  readonly takes?: Readonly<Record<string, Duration>> | undefined;
}

/** Overridden end of a unit. */
export type ForcedEnd =
  | { readonly kind: 'output'; readonly key: string; readonly output: Json }
  | { readonly kind: 'failure'; readonly key: string; readonly error: ErrorData };

/** Validated overrides. Tracks which of them have been used. */
export interface OverridePlan {
  readonly startMs: number | undefined;
  /** Overridden end of a unit; `undefined` if it ends as recorded, or `from` has not been reached. */
  endOf(step: string, unit: string): ForcedEnd | undefined;
  promptOf(step: string, unit: string): string | undefined;
  takesMs(step: string, unit: string): number | undefined;
  policyOf(step: string): FailurePolicy | undefined;
  /** Must be called for each unit that starts. */
  started(step: string, unit: string): void;
  /** Commands of the case in which an override was used. */
  readonly touched: ReadonlySet<string>;
  /** Overrides that were not used. */
  unused(): readonly UnusedKey[];
}

export interface UnusedKey {
  readonly key: string;
  readonly step: string;
  readonly unit: string;
}

/** A plan without overrides. */
export const asRecorded: OverridePlan = {
  startMs: undefined,
  endOf: () => undefined,
  promptOf: () => undefined,
  takesMs: () => undefined,
  policyOf: () => undefined,
  started: () => {},
  touched: new Set(),
  unused: () => [],
};

/** Validates overrides. Throws USAGE for those that do not fit the case. */
export function planOf(override: Override, from: string | undefined, manifest: CaseManifest): OverridePlan {
  const keys = new OverrideKeys(manifest);
  const table = <Given, Value>(
    given: Readonly<Record<string, Given>> | undefined,
    what: string,
    read: (value: Given, key: string) => Value,
  ) =>
    new Map(
      Object.entries(given ?? {}).map(([key, value]) => [
        keys.normal(key, what),
        read(value, `${what}['${key}']`),
      ]),
    );
  const outputs = table(
    override.outputs,
    'outputs',
    (output, key): ForcedEnd => ({ kind: 'output', key, output }),
  );
  const failures = table(
    override.failures,
    'failures',
    (error, key): ForcedEnd => ({ kind: 'failure', key, error: errorData(error) }),
  );
  const ends = new Map([...outputs, ...failures]);
  const prompts = table(override.prompts, 'prompts', prompt => prompt);
  const takes = table(override.clock?.takes, 'clock.takes', durationMs);
  const policies = policiesOf(override.policy, keys);
  const begins = beginning(from, keys);
  const touched = new Set<string>();
  const used = new Set<string>();

  const lookUp = <Value>(
    values: ReadonlyMap<string, Value>,
    step: string,
    unit: string,
  ): Value | undefined => {
    if (values.size === 0 || !begins.isPast(step)) return undefined;
    const key = `${step}.${unit}`;
    const value = values.get(key);
    if (value === undefined) return undefined;
    touched.add(step);
    used.add(key);
    return value;
  };

  return {
    startMs: momentOf(override.clock?.start),
    endOf: (step, unit) => lookUp(ends, step, unit),
    promptOf: (step, unit) => lookUp(prompts, step, unit) ?? lookUp(prompts, step, definitionPath(unit)),
    takesMs: (step, unit) => lookUp(takes, step, unit),
    policyOf: step => {
      const policy = begins.isInOrAfter(step) ? policies(step) : undefined;
      if (policy !== undefined) touched.add(step);
      return policy;
    },
    started: (step, unit) => begins.started(step, unit),
    touched,
    unused: () =>
      [...new Set([...ends.keys(), ...prompts.keys(), ...takes.keys()])]
        .filter(key => !used.has(key))
        .map(key => ({ key, ...keys.parts(key) })),
  };
}

/** Resolves the keys of overrides. */
class OverrideKeys {
  readonly #steps: readonly string[];
  readonly #running: readonly string[];

  constructor({ steps }: CaseManifest) {
    this.#steps = steps.map(({ name }) => name);
    this.#running = steps.filter(({ command }) => command === 'run').map(({ name }) => name);
  }

  normal(key: string, what: string): string {
    const [only, ...others] = this.#running;
    if (this.#steps.some(step => key.startsWith(`${step}.`))) return key;
    if (only !== undefined && others.length === 0) return `${only}.${key}`;
    const guess = nearest(key.split('.')[0] ?? '', this.#steps);
    throw new RepriseError(
      'USAGE',
      `override.${what}: \`${key}\` does not start with a command of the case`,
      {
        hint: guess
          ? `did you mean ${guess}.${key.split('.').slice(1).join('.')}?`
          : `commands of the case: ${this.#steps.join(', ')}`,
      },
    );
  }

  parts(key: string): { readonly step: string; readonly unit: string } {
    const step = this.#steps.find(name => key.startsWith(`${name}.`)) ?? '';
    return { step, unit: key.slice(step.length + 1) };
  }

  /** Index of a command in the case. Throws USAGE for an unknown command. */
  place(step: string, what: string): number {
    const place = this.#steps.indexOf(step);
    if (place >= 0) return place;
    throw new RepriseError('USAGE', `${what}: the case has no command \`${step}\``, {
      hint: `commands of the case: ${this.#steps.join(', ')}`,
    });
  }
}

/** The point from which overrides apply. */
interface OverrideStart {
  isPast(step: string): boolean;
  isInOrAfter(step: string): boolean;
  started(step: string, unit: string): void;
}

function beginning(from: string | undefined, keys: OverrideKeys): OverrideStart {
  if (from === undefined) return { isPast: () => true, isInOrAfter: () => true, started: () => {} };
  const { step: named, unit } = keys.parts(from);
  const step = named === '' ? from : named;
  const place = keys.place(step, '`from`');
  let hasStarted = named === '';
  const isInOrAfter = (other: string) => keys.place(other, '`from`') >= place;
  return {
    isInOrAfter,
    isPast: other => (other === step ? hasStarted : isInOrAfter(other)),
    started: (other, startedUnit) => {
      if (other === step && startedUnit === unit) hasStarted = true;
    },
  };
}

function policiesOf(
  policy: Override['policy'],
  keys: OverrideKeys,
): (step: string) => FailurePolicy | undefined {
  const given = typeof policy === 'object' ? policy : {};
  for (const step of Object.keys(given)) keys.place(step, 'override.policy');
  for (const each of typeof policy === 'object'
    ? Object.values(policy)
    : policy === undefined
      ? []
      : [policy]) {
    if (!failurePolicies.includes(each))
      throw new RepriseError('USAGE', `override.policy: unknown policy ${JSON.stringify(each)}`, {
        hint: `use one of ${failurePolicies.join(', ')}`,
      });
  }
  return step => (typeof policy === 'object' ? policy[step] : policy);
}

const errorData = (error: string | ErrorData): ErrorData =>
  typeof error === 'string' ? { code: 'STEP_FAILED', message: error } : error;

function durationMs(duration: Duration, key: string): number {
  const ms = parseDuration(duration);
  if (ms !== undefined) return ms;
  throw new RepriseError('USAGE', `override.${key}: ${JSON.stringify(duration)} is not a duration`, {
    hint: 'use milliseconds, or a string such as 30s or 1h30m',
  });
}

function momentOf(start: string | number | undefined): number | undefined {
  if (start === undefined) return undefined;
  const moment = typeof start === 'number' ? start : Date.parse(start);
  if (Number.isFinite(moment)) return moment;
  throw new RepriseError('USAGE', `override.clock.start: ${JSON.stringify(start)} is not a time`, {
    hint: 'use milliseconds since the epoch, or a string such as 2026-02-28T23:59:00Z',
  });
}
