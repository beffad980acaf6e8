import { z } from 'zod';
import { RepriseError } from '../../core/errors.ts';
import type { Json } from '../../core/json.ts';
import { formatProblem } from '../problems.ts';
import { explainIssues } from './issues.ts';
import { ProblemList } from './problem-list.ts';
import { schemaKeys } from './schema-keys.ts';
import { YamlSource } from './source.ts';

const configSchema = z
  .strictObject({
    runtime: z
      .strictObject({
        max_concurrent_workers: z
          .int()
          .min(1)
          .optional()
          .describe('How many steps of a run may run at the same time; 10 unless said otherwise.'),
        budget: z
          .strictObject({
            minutes: z.number().positive().optional().describe('Wall time that a run may take.'),
            cost_usd: z.number().positive().optional().describe('What the agents of a run may cost.'),
          })
          .optional()
          .describe('What a run may use up.'),
      })
      .optional()
      .describe('Limits of every run.'),
    agents: z.record(z.string(), z.unknown()).optional().describe('Agents by name.'),
    worktrees: z.record(z.string(), z.unknown()).optional().describe('How workspaces are made.'),
  })
  .meta({ title: 'Reprise configuration', description: 'The settings of a project: reprise.yaml.' });

/** The settings of a project, as far as they say something. */
export interface Config {
  readonly maxConcurrentWorkers?: number;
  readonly budgetMs?: number;
}

/** The JSON Schema of `reprise.yaml`. */
export const configJsonSchema = (): object => z.toJSONSchema(configSchema, { io: 'input' });

/** Reads `reprise.yaml`; an empty file says nothing. Throws CONFIG_INVALID with every problem and its position. */
export function loadConfig(text: {
  readonly file: string;
  readonly displayFile?: string;
  readonly text: string;
}): Config {
  const source = new YamlSource(text);
  const problems = new ProblemList();
  problems.open(source);
  const value: Json = source.value ?? {};
  const parsed = configSchema.safeParse(value);
  if (!parsed.success && source.isReadable) {
    const keysAt = (parent: readonly (string | number)[]) => schemaKeys(configJsonSchema() as Json, parent);
    for (const complaint of explainIssues(parsed.error.issues, value, {
      unknownKey: () => undefined,
      keysAt,
    })) {
      problems.add(source, complaint);
    }
  }
  const all = problems.all();
  if (!parsed.success || all.length > 0) {
    throw new RepriseError('CONFIG_INVALID', all.map(formatProblem).join('\n\n'), {
      position: all[0]?.position,
    });
  }
  const { max_concurrent_workers: maxConcurrentWorkers, budget } = parsed.data.runtime ?? {};
  return {
    ...(maxConcurrentWorkers === undefined ? {} : { maxConcurrentWorkers }),
    ...(budget?.minutes === undefined ? {} : { budgetMs: budget.minutes * 60_000 }),
  };
}
