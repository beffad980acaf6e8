import { z } from 'zod';
import type { Json } from '../../core/json.ts';

/** What the keys of workflow files are made of. Messages are the second half of a sentence that begins with the key. */

/** What was read from YAML is JSON already: nothing is left to check. */
export const json = z.unknown() as unknown as z.ZodType<Json>;
export const text = z.string();
export const someText = z.string().min(1, 'must not be empty');

export const identifier = z
  .string()
  .regex(
    /^[A-Za-z_][A-Za-z0-9_-]*$/,
    'must begin with a letter or `_` and go on with letters, digits, `_` or `-`',
  );

export const withUnit = (input: unknown): string | undefined =>
  typeof input === 'number' ? `must be a duration with a unit, such as \`${input}s\`` : undefined;

export const duration = z
  .string({ error: ({ input }) => withUnit(input) })
  .regex(/^(\d+(\.\d+)?(ms|s|m|h|d))+$/, 'must be a duration such as `250ms`, `30s`, `5m` or `1h30m`');

export const positiveInteger = z.int().min(1);

export const environment = z
  .record(
    z.string().regex(/^[A-Za-z_][A-Za-z0-9_]*$/, 'is not a name for an environment variable'),
    z.union([text, z.number(), z.boolean(), z.null()], 'must be text, a number, true or false'),
  )
  .describe('Environment variables. Values may contain `${{ }}`.');

export const commands = z.union(
  [someText, z.array(someText).min(1, 'must hold at least one command')],
  'must be a command, or a list of commands',
);

export const spendingLimits = {
  cost_usd: z.number().positive().optional().describe('What agents may cost, in US dollars.'),
  tokens: positiveInteger.optional().describe('How many tokens agents may read and write.'),
};
