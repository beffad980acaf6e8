import type { CaseManifest } from '../../cases/manifest/manifest.ts';
import { type ErrorData, RepriseError } from '../../core/errors.ts';
import type { Json } from '../../core/json.ts';
import { nearest } from '../../core/suggest.ts';
import { type Duration, parseDuration } from '../../core/time.ts';
import { definitionPath } from '../../engine/state/graph.ts';
import { type FailurePolicy, failurePolicies } from '../../workflow/model.ts';

/**
 * What is to be otherwise. Keys are `<step of the case>.<step of the workflow>`, such as `fix_readme.fix`, and
 * `fix_readme.fix:1` for a worker; the first part may be left out if the case has one step that runs a workflow.
 */
export interface Override {
  /** What steps give, whatever became of them when they were recorded. */
  readonly outputs?: Readonly<Record<string, Json>> | undefined;
  /** Steps that fail, with this message or error, at every attempt. */
  readonly failures?: Readonly<Record<string, string | ErrorData>> | undefined;
  /** What agents are told. Their recorded answers are to another prompt, so give them outputs too. */
  readonly prompts?: Readonly<Record<string, string>> | undefined;
  /** `on_failure` of the workflows that are run; or by the step of the case. */
  readonly policy?: FailurePolicy | Readonly<Record<string, FailurePolicy>> | undefined;
  readonly clock?: ClockOverride | undefined;
}

export interface ClockOverride {
  /** When the case begins: a time such as `2026-02-28T23:59:00Z`, or milliseconds since the epoch. */
  readonly start?: string | number | undefined;
  /** How long the work of an attempt takes; none takes any time otherwise. */
  readonly takes?: Readonly<Record<string, Duration>> | undefined;
}

/** How the work of a unit is made to end. */
export type ForcedEnd =
  | { readonly kind: 'output'; readonly key: string; readonly output: Json }
  | { readonly kind: 'failure'; readonly key: string; readonly error: ErrorData };

/** What is to be otherwise, checked, and what of it has been used. */
export interface Plan {
  readonly startMs: number | undefined;
  /** How its work is to end; `undefined` if it is to end as recorded, or overrides are not in force yet. */
  endOf(step: string, unit: string): ForcedEnd | undefined;
  promptOf(step: string, unit: string): string | undefined;
  takesMs(step: string, unit: string): number | undefined;
  policyOf(step: string): FailurePolicy | undefined;
  /** To be told of each unit that starts. */
  started(step: string, unit: string): void;
  /** Steps of the case in which something was otherwise. */
  readonly touched: ReadonlySet<string>;
  /** Overrides that were never asked for, as they were written. */
  unused(): readonly UnusedKey[];
}

export interface UnusedKey {
  readonly key: string;
  readonly step: string;
  readonly unit: string;
}

/** Nothing is otherwise. */
export const asRecorded: Plan = {
  startMs: undefined,
  endOf: () => undefined,
  promptOf: () => undefined,
  takesMs: () => undefined,
  policyOf: () => undefined,
  started: () => {},
  touched: new Set(),
  unused: () => [],
};

/** Throws USAGE for what does not fit the case. */
export function planOf(override: Override, from: string | undefined, manifest: CaseManifest): Plan {
  const keys = new Keys(manifest);
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

/** The names that overrides go by. */
class Keys {
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
    throw new RepriseError('USAGE', `override.${what} names ${key}, which begins with no step of the case`, {
      hint: guess
        ? `did you mean ${guess}.${key.split('.').slice(1).join('.')}?`
        : `steps: ${this.#steps.join(', ')}`,
    });
  }

  parts(key: string): { readonly step: string; readonly unit: string } {
    const step = this.#steps.find(name => key.startsWith(`${name}.`)) ?? '';
    return { step, unit: key.slice(step.length + 1) };
  }

  /** Its place in the case. Throws USAGE. */
  place(step: string, what: string): number {
    const place = this.#steps.indexOf(step);
    if (place >= 0) return place;
    throw new RepriseError('USAGE', `${what} names ${step}, which is no step of the case`, {
      hint: `steps: ${this.#steps.join(', ')}`,
    });
  }
}

/** From where on overrides are in force. */
interface Beginning {
  isPast(step: string): boolean;
  isInOrAfter(step: string): boolean;
  started(step: string, unit: string): void;
}

function beginning(from: string | undefined, keys: Keys): Beginning {
  if (from === undefined) return { isPast: () => true, isInOrAfter: () => true, started: () => {} };
  const { step: named, unit } = keys.parts(from);
  const step = named === '' ? from : named;
  const place = keys.place(step, '`from`');
  let hasBegun = named === '';
  const isInOrAfter = (other: string) => keys.place(other, '`from`') >= place;
  return {
    isInOrAfter,
    isPast: other => (other === step ? hasBegun : isInOrAfter(other)),
    started: (other, begun) => {
      if (other === step && begun === unit) hasBegun = true;
    },
  };
}

function policiesOf(policy: Override['policy'], keys: Keys): (step: string) => FailurePolicy | undefined {
  const given = typeof policy === 'object' ? policy : {};
  for (const step of Object.keys(given)) keys.place(step, 'override.policy');
  for (const each of typeof policy === 'object'
    ? Object.values(policy)
    : policy === undefined
      ? []
      : [policy]) {
    if (!failurePolicies.includes(each))
      throw new RepriseError('USAGE', `override.policy is ${JSON.stringify(each)}`, {
        hint: `one of ${failurePolicies.join(', ')}`,
      });
  }
  return step => (typeof policy === 'object' ? policy[step] : policy);
}

const errorData = (error: string | ErrorData): ErrorData =>
  typeof error === 'string' ? { code: 'STEP_FAILED', message: error } : error;

function durationMs(duration: Duration, key: string): number {
  const ms = parseDuration(duration);
  if (ms !== undefined) return ms;
  throw new RepriseError('USAGE', `override.${key} is ${JSON.stringify(duration)}, which is not a duration`, {
    hint: 'milliseconds, or a text such as 30s or 1h30m',
  });
}

function momentOf(start: string | number | undefined): number | undefined {
  if (start === undefined) return undefined;
  const moment = typeof start === 'number' ? start : Date.parse(start);
  if (Number.isFinite(moment)) return moment;
  throw new RepriseError('USAGE', `override.clock.start is ${JSON.stringify(start)}, which is not a time`, {
    hint: 'write it as 2026-02-28T23:59:00Z',
  });
}
