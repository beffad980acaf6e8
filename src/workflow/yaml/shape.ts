import type { z } from 'zod';
import { isJsonObject, type Json, type JsonObject } from '../../core/json.ts';
import {
  type StepDefinition,
  stepSchema,
  type WorkflowDefinition,
  workflowJsonSchema,
  workflowSchema,
} from './schema.ts';
import { explainIssues, schemaKeys, type Wording } from './source/explain-issues.ts';
import type { ProblemList } from './source/problem-list.ts';
import type { Path, YamlSource } from './source/yaml-source.ts';

/** A step as it was written, and as far as it has the right shape. */
export interface ShapedStep {
  readonly path: Path;
  /** Without the keys that have the wrong shape; `undefined` if even the rest cannot be used. */
  readonly definition: StepDefinition | undefined;
  readonly written: JsonObject;
  /** Something about it has been reported already: what is missing may be what was wrong. */
  readonly isDamaged: boolean;
}

/** A workflow as far as it has the right shape. */
export interface ShapedWorkflow {
  readonly definition: Partial<Omit<WorkflowDefinition, 'steps'>>;
  readonly steps: readonly ShapedStep[];
  readonly written: JsonObject;
}

/**
 * Checks the shape of a file and reports what does not fit. What does fit is given back, so that the rest of it is
 * checked as well and a person learns of everything at once.
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

type Issue = z.core.$ZodIssue;

const stepPath = (index: number): Path => ['steps', index];

function salvageSteps(value: JsonObject, issues: readonly Issue[]): readonly ShapedStep[] {
  const byStep = new Map<unknown, Issue[]>();
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

/** Everything but the steps, without the entries (of maps such as `inputs`: without their entries) that are wrong. */
function soundPart({ steps: _, ...top }: JsonObject, issues: readonly Issue[]): JsonObject {
  const sound = withoutKeys(top, brokenKeys(issues.filter(isAboutKey), 0));
  return Object.fromEntries(
    Object.entries(sound).map(([key, value]) => {
      const inner = issues.filter(({ path }) => path[0] === key);
      return [key, isJsonObject(value) ? withoutKeys(value, brokenKeys(inner, 1)) : value];
    }),
  );
}

/** The key at the top is wrong, and not something inside of it. */
const isAboutKey = ({ code, path }: Issue): boolean =>
  path.length === 0 || (path.length === 1 && code !== 'unrecognized_keys');

/** The keys, `depth` levels down, under which something is wrong. */
function brokenKeys(issues: readonly Issue[], depth: number): ReadonlySet<string> {
  return new Set(
    issues.flatMap(issue => {
      const unknown = issue.code === 'unrecognized_keys' && issue.path.length === depth ? issue.keys : [];
      return [...unknown, ...issue.path.slice(depth, depth + 1).map(String)];
    }),
  );
}

const withoutKeys = (map: JsonObject, keys: ReadonlySet<string>): JsonObject =>
  Object.fromEntries(Object.entries(map).filter(([key]) => !keys.has(key)));

/** Made for the first mistake, since most files have none. */
let keySchema: Json | undefined;

function workflowWording(): Wording {
  return {
    unknownKey: (key, parent) => {
      if (parent.length === 0) return objectToWorkflowKey(key);
      if (parent.length !== 2 || parent[0] !== 'steps') return undefined;
      return objectToStepKey(key);
    },
    hintAt: path => (path[0] === 'steps' && path.length === 3 ? hintForStepKey(String(path[2])) : undefined),
    keysAt: parent => {
      keySchema ??= workflowJsonSchema() as JsonObject;
      return schemaKeys(keySchema, parent);
    },
  };
}

/** Words that are not keys but that people write, and what they meant. */

interface Objection {
  readonly message: string;
  readonly hint?: string | undefined;
}

const stepWords: Readonly<Record<string, string>> = {
  'continue-on-error': 'write `optional: true`',
  continue_on_error: 'write `optional: true`',
  'runs-on': 'leave it out: steps run on this machine',
  depends_on: 'write `needs`',
  dependsOn: 'write `needs`',
  command: 'write `run`',
  script: 'write `run`',
  timeout_minutes: 'write `timeout-minutes`',
  working_directory: 'write `working-directory`',
  cwd: 'write `working-directory`',
  when: 'write `if`',
  matrix: 'write `strategy: { matrix: ... }`',
  'max-parallel': 'write `strategy: { max-parallel: N }`',
  'fail-fast': 'write `strategy: { fail-fast: ... }`',
  on_failure:
    'write `strategy: { on_failure: ... }` for the copies of a step; that of the workflow stands at the top',
  'max-turns': 'write `max_turns`',
  worktree: 'write `workspace`',
  model: 'say it where the agent is defined, in `reprise.yaml`',
  allow: 'write `permissions: { allow: [...] }`',
  deny: 'write `permissions: { deny: [...] }`',
  steps: 'a step has no steps of its own: put them into another workflow and run it with `uses`',
};

const workflowWords: Readonly<Record<string, string>> = {
  jobs: 'write `steps`: a list of steps, each with an `id` and its `needs`',
  on: 'leave it out: a workflow starts when you run it',
  'runs-on': 'leave it out: steps run on this machine',
  concurrency: 'write `runtime: { max_concurrent_workers: N }`',
  'timeout-minutes': 'write `runtime: { budget: { minutes: N } }`',
  'fail-fast': 'write `on_failure: fail-fast`',
  defaults: 'write `shell` and `working-directory` in the steps',
  permissions: 'write `permissions` in the steps of agents; scripts run with your own rights',
  strategy: 'write `strategy` in the step',
};

const lookup = (words: Readonly<Record<string, string>>, key: string): string | undefined =>
  Object.hasOwn(words, key) ? words[key] : undefined;

/** What to say about a key that a step cannot have; `undefined` if there is nothing special to say. */
const objectToStepKey = (key: string): Objection | undefined =>
  pointed('a step', key, lookup(stepWords, key));

/** What to say beside a value that does not fit a key of a step. */
const hintForStepKey = (key: string): string | undefined =>
  key === 'concurrency'
    ? 'write how many copies of the step run, such as `concurrency: 3`; for one copy for each item use `strategy.matrix`'
    : undefined;

const objectToWorkflowKey = (key: string): Objection | undefined =>
  pointed('a workflow', key, lookup(workflowWords, key));

const pointed = (owner: string, key: string, hint: string | undefined): Objection | undefined =>
  hint === undefined ? undefined : { message: `${owner} has no \`${key}\``, hint };

/** `actions/checkout@v4` and the like. */
export const isGitHubAction = (reference: string): boolean => /^[\w.-]+\/[\w./-]+@\S+$/.test(reference);
