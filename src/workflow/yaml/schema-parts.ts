import { z } from 'zod';
import type { Json } from '../../core/index.ts';

// Building blocks of the schemas. Each message is the second half of a sentence that starts with the key.

/** Accepts everything: a value that was read from YAML is already JSON. */
export const json = z.unknown() as unknown as z.ZodType<Json>;
export const text = z.string();
export const someText = z.string().min(1, 'must not be empty');

export const identifier = z
  .string()
  .regex(
    /^[A-Za-z_][A-Za-z0-9_-]*$/,
    'must be an identifier (letters, digits, `_` and `-`, starting with a letter or `_`)',
  );

export const withUnit = (input: unknown): string | undefined =>
  typeof input === 'number' ? `must be a duration with a unit, such as \`${input}s\`` : undefined;

export const duration = z
  .string({ error: ({ input }) => withUnit(input) })
  .regex(/^(\d+(\.\d+)?(ms|s|m|h|d))+$/, 'must be a duration such as `250ms`, `30s`, `5m` or `1h30m`');

export const positiveInteger = z.int().min(1);

export const environment = z
  .record(
    z.string().regex(/^[A-Za-z_][A-Za-z0-9_]*$/, 'is not a valid environment variable name'),
    z.union([text, z.number(), z.boolean(), z.null()], 'must be a string, a number, true or false'),
  )
  .describe('Environment variables. Values may contain `${{ }}`.');

export const commands = z.union(
  [someText, z.array(someText).min(1, 'must contain at least one command')],
  'must be a command, or a list of commands',
);

export const spendingLimits = {
  cost_usd: z.number().positive().optional().describe('Maximum cost of all agents, in US dollars.'),
  tokens: positiveInteger.optional().describe('Maximum number of input and output tokens of all agents.'),
};
