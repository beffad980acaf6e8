import { z } from 'zod';
import { isJsonObject, type Json, type JsonObject, parseDuration, RepriseError } from '../../core/index.ts';
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
import { commands, duration, positiveInteger, someText, spendingLimits } from './schema-work.ts';
import { explainIssues, schemaKeys } from './source/explain-issues.ts';
import { type Complaint, ProblemList } from './source/problem-list.ts';
import { YamlSource } from './source/yaml-source.ts';

/** Validation of the `agents` section, supplied by the agents module. Callers that ignore agents can omit it. */
export interface AgentRules {
  readonly schema: z.ZodType;
  /** Checks an agent that matches the schema. Paths in the result are relative to the agent. */
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
            .describe('Maximum number of steps of a run that run in parallel. Defaults to 10.'),
          budget: z
            .strictObject({
              minutes: z.number().positive().optional().describe('Maximum wall time of a run, in minutes.'),
              ...spendingLimits,
            })
            .optional()
            .describe('Limits on time, cost and tokens of a run.'),
        })
        .optional()
        .describe('Limits for every run.'),
      agents: z.record(z.string(), agent).optional().describe('Agents by name.'),
      worktrees: z
        .strictObject({
          setup: commands.optional().describe('Commands that prepare every new workspace.'),
          include: z
            .array(someText)
            .optional()
            .describe('Git-ignored files to copy into every workspace, as `.gitignore` patterns.'),
          folder: someText
            .optional()
            .describe(
              "Folder for workspaces, relative to the project's root. Defaults to `.reprise/workspaces`.",
            ),
        })
        .optional()
        .describe('Settings for workspaces.'),
      tasks: tasksSchema.optional(),
      workers: workersSchema.optional(),
      protect: z
        .array(someText)
        .optional()
        .describe(
          'Patterns of further protected files, which the tools of agents cannot edit and which land only with an approval. `!pattern` removes a pattern.',
        ),
      land_protected: z
        .boolean()
        .optional()
        .describe(
          'If true in the commit that work lands on, changes of protected files land without an approval. Defaults to false.',
        ),
      lock_timeout: duration
        .optional()
        .describe(
          'Time after which `land`, and a worker that ends by itself, stop waiting for a stalled process, keep their work and exit with 3. At least a minute. Defaults to 10m.',
        ),
      record: z
        .boolean()
        .optional()
        .describe(
          'If true, every run keeps a journal that `reprise capture` can turn into a test. Defaults to true.',
        ),
    })
    .meta({ title: 'Reprise configuration', description: 'Settings of a project (`reprise.yaml`).' });
}

/** Settings of a project. A missing field means that the file does not set it. */
export interface Config {
  readonly maxConcurrentWorkers?: number;
  readonly budgetMs?: number;
  /** Limits on the cost and tokens of all agents of a run. */
  readonly budget?: SpendingLimit;
  /** Agents by name, as written. */
  readonly agents?: JsonObject;
  readonly worktrees?: WorktreeConfig;
  /** Source of tasks. Defaults to `defaultTaskSource`. */
  readonly tasks?: TaskSource;
  /** Settings of workers. Defaults to `defaultWorkerSettings`. */
  readonly workers?: WorkerSettings;
  /** Patterns of further protected files. `!` removes a pattern. */
  readonly protect?: readonly string[];
  /** Time to wait for a stalled process that holds a lock. Defaults to 10 minutes. */
  readonly lockTimeoutMs?: number;
  /** If true, runs keep a journal. Defaults to true. */
  readonly record?: boolean;
}

export interface WorktreeConfig {
  readonly setup: readonly string[];
  readonly include: readonly string[];
  /** Path as written, relative to the project's root. */
  readonly folder?: string;
}

/** Returns the JSON Schema of `reprise.yaml`. Describes agents if their schema is given. */
export const configJsonSchema = (agent?: z.ZodType): object =>
  z.toJSONSchema(configSchema(agent), { io: 'input' });

/** Settings for protected files. */
export interface Protection {
  readonly protect: readonly string[];
  /** Whether changes of protected files land without an approval. */
  readonly landProtected: boolean;
}

/** Reads the settings for protected files from a `reprise.yaml` that may be invalid otherwise. */
export function protectionIn(text: string): Protection {
  const source = new YamlSource({ file: 'reprise.yaml', text });
  const { protect, land_protected } = source.isReadable && isJsonObject(source.value) ? source.value : {};
  const patterns = Array.isArray(protect) ? protect.filter(pattern => typeof pattern === 'string') : [];
  return { protect: patterns, landProtected: land_protected === true };
}

interface ConfigText {
  readonly file: string;
  readonly displayFile?: string;
  readonly text: string;
}

/** Parses `reprise.yaml`. An empty file is valid. Throws CONFIG_INVALID with every problem and its position. */
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

/** Checks the agents that match their schema. Schema errors are reported with the rest of the file. */
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

function toConfig(written: WrittenConfig): Config {
  const { runtime, agents, worktrees, tasks, workers, protect, record } = written;
  const lockTimeoutMs = written.lock_timeout === undefined ? undefined : parseDuration(written.lock_timeout);
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
    ...(protect ? { protect } : {}),
    ...(lockTimeoutMs === undefined ? {} : { lockTimeoutMs }),
    ...(record === undefined ? {} : { record }),
  };
}

interface WrittenWorktrees {
  readonly setup?: string | readonly string[] | undefined;
  readonly include?: readonly string[] | undefined;
  readonly folder?: string | undefined;
}

const toSettings = ({ setup = [], include = [], folder }: WrittenWorktrees): WorktreeConfig => ({
  setup: typeof setup === 'string' ? [setup] : setup,
  include,
  ...(folder === undefined ? {} : { folder }),
});
