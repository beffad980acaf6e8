import type { z } from 'zod';
import { isJsonObject, type Json, type JsonObject } from '../../core/json.ts';
import {
  type StepDefinition,
  stepSchema,
  type WorkflowDefinition,
  workflowJsonSchema,
  workflowSchema,
} from './schema.ts';
import { schemaKeys } from './schema-keys.ts';
import { explainIssues, type Wording } from './source/explain-issues.ts';
import type { ProblemList } from './source/problem-list.ts';
import type { Path, YamlSource } from './source/yaml-source.ts';
import { hintForStepKey, objectToStepKey, objectToWorkflowKey } from './words.ts';

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
