import { isJsonObject, type Json, type JsonObject } from '../../core/index.ts';
import {
  type StepDefinition,
  stepSchema,
  type WorkflowDefinition,
  workflowJsonSchema,
  workflowSchema,
} from './schema.ts';
import { explainIssues, schemaKeys, type Wording, type ZodIssue } from './source/explain-issues.ts';
import type { ProblemList } from './source/problem-list.ts';
import type { Path, YamlSource } from './source/yaml-source.ts';

/** A step as written, and the part of it that matches the schema. */
export interface ShapedStep {
  readonly path: Path;
  /** Definition without the invalid keys. `undefined` if the rest is still invalid. */
  readonly definition: StepDefinition | undefined;
  readonly written: JsonObject;
  /** True if a problem was already reported. A missing key may then be an invalid one. */
  readonly isDamaged: boolean;
}

/** The part of a workflow that matches the schema. */
export interface ShapedWorkflow {
  readonly definition: Partial<Omit<WorkflowDefinition, 'steps'>>;
  readonly steps: readonly ShapedStep[];
  readonly written: JsonObject;
}

/**
 * Validates a file against the schema and reports every mismatch. Returns the valid part, so that later checks can
 * report their problems in the same pass.
 */
export function shapeOf(source: YamlSource, problems: ProblemList): ShapedWorkflow | undefined {
  const { value } = source;
  const parsed = workflowSchema.safeParse(value);
  const issues = parsed.success ? [] : parsed.error.issues;
  if (issues.length > 0) {
    for (const complaint of explainIssues(issues, value, workflowWording())) problems.add(source, complaint);
  }
  if (!isJsonObject(value)) return undefined;
  if (parsed.success) {
    const { steps: definitions, ...definition } = parsed.data;
    const steps = writtenSteps(value).map((written, index) => ({
      path: stepPath(index),
      definition: definitions[index],
      written,
      isDamaged: false,
    }));
    return { definition, steps, written: value };
  }
  const definition = topSchema.safeParse(soundPart(value, issues));
  return { definition: definition.data ?? {}, steps: salvageSteps(value, issues), written: value };
}

const topSchema = workflowSchema.omit({ steps: true });

const stepPath = (index: number): Path => ['steps', index];

function salvageSteps(value: JsonObject, issues: readonly ZodIssue[]): readonly ShapedStep[] {
  const byStep = new Map<unknown, ZodIssue[]>();
  for (const issue of issues) {
    const [section, index] = issue.path;
    if (section === 'steps') byStep.set(index, [...(byStep.get(index) ?? []), issue]);
  }
  return writtenSteps(value).map((written, index) => {
    const own = byStep.get(index) ?? [];
    const definition = stepSchema.safeParse(withoutKeys(written, brokenKeys(own, 2))).data;
    return { path: stepPath(index), definition, written, isDamaged: own.length > 0 };
  });
}

const writtenSteps = ({ steps }: JsonObject): readonly JsonObject[] =>
  Array.isArray(steps) ? steps.map((step: Json) => (isJsonObject(step) ? step : {})) : [];

/** Returns all keys except `steps`, without invalid values, and without invalid entries of maps such as `inputs`. */
function soundPart({ steps: _, ...top }: JsonObject, issues: readonly ZodIssue[]): JsonObject {
  const sound = withoutKeys(top, brokenKeys(issues.filter(isAboutKey), 0));
  return Object.fromEntries(
    Object.entries(sound).map(([key, value]) => {
      const inner = issues.filter(({ path }) => path[0] === key);
      return [key, isJsonObject(value) ? withoutKeys(value, brokenKeys(inner, 1)) : value];
    }),
  );
}

/** True if the top-level key itself is invalid, rather than a value inside it. */
const isAboutKey = ({ code, path }: ZodIssue): boolean =>
  path.length === 0 || (path.length === 1 && code !== 'unrecognized_keys');

/** Returns the keys at level `depth` that contain an issue. */
function brokenKeys(issues: readonly ZodIssue[], depth: number): ReadonlySet<string> {
  return new Set(
    issues.flatMap(issue => {
      const unknown = issue.code === 'unrecognized_keys' && issue.path.length === depth ? issue.keys : [];
      return [...unknown, ...issue.path.slice(depth, depth + 1).map(String)];
    }),
  );
}

const withoutKeys = (map: JsonObject, keys: ReadonlySet<string>): JsonObject =>
  Object.fromEntries(Object.entries(map).filter(([key]) => !keys.has(key)));

/** Created on the first problem, because most files have none. */
let keySchema: Json | undefined;

function workflowWording(): Wording {
  return {
    unknownKey: (key, parent) => {
      if (parent.length === 0) return objectToKey(key, foreignWorkflowKeys);
      if (parent.length !== 2 || parent[0] !== 'steps') return undefined;
      return objectToKey(key, foreignStepKeys);
    },
    hintAt: path => (path[0] === 'steps' && path.length === 3 ? hintForStepKey(String(path[2])) : undefined),
    keysAt: parent => {
      keySchema ??= workflowJsonSchema() as JsonObject;
      return schemaKeys(keySchema, parent);
    },
  };
}

interface KeyObjection {
  readonly message: string;
  readonly hint?: string | undefined;
}

/** Hints for keys that other tools have in a step. */
const foreignStepKeys: Readonly<Record<string, string>> = {
  'continue-on-error': 'use `optional: true`',
  continue_on_error: 'use `optional: true`',
  'runs-on': 'remove it: steps run on this machine',
  depends_on: 'use `needs`',
  dependsOn: 'use `needs`',
  command: 'use `run`',
  script: 'use `run`',
  timeout_minutes: 'use `timeout-minutes`',
  working_directory: 'use `working-directory`',
  cwd: 'use `working-directory`',
  when: 'use `if`',
  matrix: 'use `strategy: { matrix: ... }`',
  'max-parallel': 'use `strategy: { max-parallel: N }`',
  'fail-fast': 'use `strategy: { fail-fast: ... }`',
  on_failure:
    'use `strategy: { on_failure: ... }` for the copies of a step, or the top-level `on_failure` for the workflow',
  'max-turns': 'use `max_turns`',
  worktree: 'use `workspace`',
  model: 'set it in the definition of the agent, in `reprise.yaml`',
  allow: 'use `permissions: { allow: [...] }`',
  deny: 'use `permissions: { deny: [...] }`',
  steps: 'move these steps into another workflow and run it with `uses`',
};

/** Hints for keys that other tools have at the top level. */
const foreignWorkflowKeys: Readonly<Record<string, string>> = {
  jobs: 'use `steps`: a list of steps, each with an `id` and its `needs`',
  on: 'remove it: a workflow starts when you run it',
  'runs-on': 'remove it: steps run on this machine',
  concurrency: 'use `runtime: { max_concurrent_workers: N }`',
  'timeout-minutes': 'use `runtime: { budget: { minutes: N } }`',
  'fail-fast': 'use `on_failure: fail-fast`',
  defaults: 'set `shell` and `working-directory` in each step',
  permissions: 'set `permissions` in the steps with an agent; scripts run with your own permissions',
  strategy: 'set `strategy` in the step',
};

function objectToKey(key: string, hints: Readonly<Record<string, string>>): KeyObjection | undefined {
  const hint = Object.hasOwn(hints, key) ? hints[key] : undefined;
  return hint === undefined ? undefined : { message: `\`${key}\` is not supported`, hint };
}

/** Returns a hint for an invalid value of a step's key. */
const hintForStepKey = (key: string): string | undefined =>
  key === 'concurrency'
    ? 'write the number of copies, such as `concurrency: 3`; for one copy per item, use `strategy.matrix`'
    : undefined;

/** True for a reference such as `actions/checkout@v4`. */
export const isGitHubAction = (reference: string): boolean => /^[\w.-]+\/[\w./-]+@\S+$/.test(reference);
