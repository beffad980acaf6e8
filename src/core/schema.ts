/**
 * Checks of maps whose every field is known, for what is read before anything else can happen: importing zod and
 * warming its checks up takes 150 ms.
 */
export type Fields = readonly Field[];

export interface Rule {
  readonly expected: string;
  readonly holds: (value: unknown) => boolean;
}

interface Field extends Rule {
  readonly key: string;
  readonly optional: boolean;
}

export const isName = (value: unknown): value is string => typeof value === 'string' && value !== '';

export const json: Rule = { expected: 'a value', holds: value => value !== undefined };
export const text: Rule = { expected: 'a text', holds: value => typeof value === 'string' };
export const name: Rule = { expected: 'a text that is not empty', holds: isName };
export const names: Rule = {
  expected: 'a list of texts',
  holds: value => Array.isArray(value) && value.every(isName),
};
export const texts: Rule = {
  expected: 'a map of texts',
  // zod passes over `__proto__`.
  holds: value =>
    isRecord(value) &&
    Object.entries(value).every(([key, each]) => typeof each === 'string' || key === '__proto__'),
};
export const truth: Rule = { expected: 'true or false', holds: value => typeof value === 'boolean' };
export const number: Rule = { expected: 'a number', holds: value => Number.isFinite(value) };

export const numberFrom = (least: number): Rule => ({
  expected: `a number from ${least}`,
  holds: value => Number.isFinite(value) && Number(value) >= least,
});

export const wholeFrom = (least: number): Rule => ({
  expected: `a whole number from ${least}`,
  holds: value => Number.isSafeInteger(value) && Number(value) >= least,
});

export const oneOf = (...values: readonly unknown[]): Rule => ({
  expected: `one of ${values.join(', ')}`,
  holds: value => values.includes(value),
});

export const list = ({ expected, holds }: Rule): Rule => ({
  expected: `a list, each ${expected}`,
  holds: value => Array.isArray(value) && value.every(holds),
});

export const map = (known: Fields): Rule => ({
  expected: 'a map with the right fields',
  holds: value => firstProblem(known, value) === undefined,
});

type Rules = Readonly<Record<string, Rule>>;

export const fields = (required: Rules, optional: Rules = {}): Fields => [
  ...Object.entries(required).map(([key, rule]) => ({ key, optional: false, ...rule })),
  ...Object.entries(optional).map(([key, rule]) => ({ key, optional: true, ...rule })),
];

/** The first field that is missing, wrong or unknown; undefined if there is none. `path` stands before its name. */
export function firstProblem(known: Fields, value: unknown, path = ''): string | undefined {
  if (!isRecord(value)) return `${path.slice(0, -1)}: expected a map`;
  let absent = 0;
  for (const field of known) {
    const { key } = field;
    const given = value[key];
    if (given === undefined && field.optional) absent += Object.hasOwn(value, key) ? 0 : 1;
    else if (!field.holds(given)) return `${path}${key}: expected ${field.expected}`;
  }
  if (countKeys(value) === known.length - absent) return undefined;
  const unknown = Object.keys(value).find(key => known.every(field => field.key !== key));
  return `${path}${unknown}: unknown field`;
}

/** `Object.keys` would make a list for each of many thousand events. */
function countKeys(value: Readonly<Record<string, unknown>>): number {
  let count = 0;
  for (const key in value) if (Object.hasOwn(value, key)) count++;
  return count;
}

export const isRecord = (value: unknown): value is Readonly<Record<string, unknown>> =>
  typeof value === 'object' && value !== null && !Array.isArray(value);
