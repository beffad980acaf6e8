import { canonicalJson, type Json } from '../../core/json.ts';

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
