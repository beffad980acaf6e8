import { z } from 'zod';
import { RepriseError } from '../../core/errors.ts';
import { isJsonObject, type Json, type JsonObject } from '../../core/json.ts';
import type { SpendingLimit } from '../model.ts';
import { formatProblem } from '../problems.ts';
import { compileSpending } from './compile/work.ts';
import {
  type TaskSource,
  tasksSchema,
  toTaskSource,
  toWorkerSettings,
  type WorkerSettings,
  workerComplaints,
  workerHint,
  workersSchema,
} from './config-workers.ts';
import { commands, positiveInteger, someText, spendingLimits } from './schema-parts.ts';
import { explainIssues, schemaKeys } from './source/explain-issues.ts';
import { type Complaint, ProblemList } from './source/problem-list.ts';
import { YamlSource } from './source/yaml-source.ts';

/** What is known of agents where they are at home. Whoever reads only the rest of the file can do without. */
export interface AgentRules {
  readonly schema: z.ZodType;
  /** What is wrong with an agent of the right shape; paths begin at the agent. */
  readonly problemsOf: (name: string, agent: JsonObject) => readonly Complaint[];
}

const anyAgent = z.record(z.string(), z.unknown());

function configSchema(agent: z.ZodType = anyAgent) {
  return z
    .strictObject({
      runtime: z
        .strictObject({
          max_concurrent_workers: positiveInteger
            .optional()
            .describe('How many steps of a run may run at the same time; 10 unless said otherwise.'),
          budget: z
            .strictObject({
              minutes: z.number().positive().optional().describe('Wall time that a run may take.'),
              ...spendingLimits,
            })
            .optional()
            .describe('What a run may use up.'),
        })
        .optional()
        .describe('Limits of every run.'),
      agents: z.record(z.string(), agent).optional().describe('Agents by name.'),
      worktrees: z
        .strictObject({
          setup: commands.optional().describe('Commands that prepare every new workspace.'),
          include: z
            .array(someText)
            .optional()
            .describe('Ignored files that are copied into every workspace, as patterns of `.gitignore`.'),
          folder: someText
            .optional()
            .describe("Where workspaces are made, relative to the project's root; `.reprise/workspaces`."),
        })
        .optional()
        .describe('How workspaces are made.'),
      tasks: tasksSchema.optional(),
      workers: workersSchema.optional(),
      record: z
        .boolean()
        .optional()
        .describe('Whether every run keeps a journal, from which `reprise capture` makes a test; true.'),
    })
    .meta({ title: 'Reprise configuration', description: 'The settings of a project: reprise.yaml.' });
}

/** The settings of a project, as far as they say something. */
export interface Config {
  readonly maxConcurrentWorkers?: number;
  readonly budgetMs?: number;
  /** What the agents of a run may use up. */
  readonly budget?: SpendingLimit;
  /** By name, as they were written. */
  readonly agents?: JsonObject;
  readonly worktrees?: WorktreeSettings;
  /** `defaultTaskSource` holds without it. */
  readonly tasks?: TaskSource;
  /** `defaultWorkerSettings` hold without it. */
  readonly workers?: WorkerSettings;
  /** Whether runs keep a journal; they do unless it is false. */
  readonly record?: boolean;
}

export interface WorktreeSettings {
  readonly setup: readonly string[];
  readonly include: readonly string[];
  /** As it was written: relative to the project's root. */
  readonly folder?: string;
}

/** The JSON Schema of `reprise.yaml`; with the one of an agent it says what agents look like. */
export const configJsonSchema = (agent?: z.ZodType): object =>
  z.toJSONSchema(configSchema(agent), { io: 'input' });

interface ConfigText {
  readonly file: string;
  readonly displayFile?: string;
  readonly text: string;
}

/** Reads `reprise.yaml`; an empty file says nothing. Throws CONFIG_INVALID with every problem and its position. */
export function loadConfig(text: ConfigText, agentRules?: AgentRules): Config {
  const source = new YamlSource(text);
  const problems = new ProblemList();
  problems.open(source);
  const value: Json = source.value ?? {};
  const schema = configSchema(agentRules?.schema);
  const parsed = schema.safeParse(value);
  const keysAt = (parent: readonly (string | number)[]) =>
    schemaKeys(z.toJSONSchema(schema, { io: 'input' }) as Json, parent);
  const issues = parsed.success || !source.isReadable ? [] : parsed.error.issues;
  for (const complaint of [
    ...explainIssues(issues, value, { unknownKey: () => undefined, hintAt: workerHint, keysAt }),
    ...workerComplaints(value),
    ...agentComplaints(value, agentRules),
  ]) {
    problems.add(source, complaint);
  }
  const all = problems.all();
  if (!parsed.success || all.length > 0) {
    throw new RepriseError('CONFIG_INVALID', all.map(formatProblem).join('\n\n'), {
      position: all[0]?.position,
    });
  }
  return toConfig(parsed.data);
}

/** Beyond their shape, which is looked at with the rest of the file. */
function agentComplaints(config: Json, rules: AgentRules | undefined): readonly Complaint[] {
  const agents = isJsonObject(config) ? config['agents'] : undefined;
  if (!rules || !isJsonObject(agents)) return [];
  return Object.entries(agents).flatMap(([name, agent]) =>
    isJsonObject(agent) && rules.schema.safeParse(agent).success
      ? rules
          .problemsOf(name, agent)
          .map(complaint => ({ ...complaint, path: ['agents', name, ...complaint.path] }))
      : [],
  );
}

type WrittenConfig = z.infer<ReturnType<typeof configSchema>>;

function toConfig({ runtime, agents, worktrees, tasks, workers, record }: WrittenConfig): Config {
  const { max_concurrent_workers: maxConcurrentWorkers, budget } = runtime ?? {};
  const spending = compileSpending(budget);
  return {
    ...(maxConcurrentWorkers === undefined ? {} : { maxConcurrentWorkers }),
    ...(budget?.minutes === undefined ? {} : { budgetMs: budget.minutes * 60_000 }),
    ...(spending ? { budget: spending } : {}),
    ...(agents ? { agents: agents as JsonObject } : {}),
    ...(worktrees ? { worktrees: toSettings(worktrees) } : {}),
    ...(tasks ? { tasks: toTaskSource(tasks) } : {}),
    ...(workers ? { workers: toWorkerSettings(workers) } : {}),
    ...(record === undefined ? {} : { record }),
  };
}

interface WrittenWorktrees {
  readonly setup?: string | readonly string[] | undefined;
  readonly include?: readonly string[] | undefined;
  readonly folder?: string | undefined;
}

const toSettings = ({ setup = [], include = [], folder }: WrittenWorktrees): WorktreeSettings => ({
  setup: typeof setup === 'string' ? [setup] : setup,
  include,
  ...(folder === undefined ? {} : { folder }),
});
