import { type JsonObject, parseRule, toJson } from '../../core/index.ts';
import type { AgentOutput, StepPermissions } from '../model.ts';
import { buildStep, describeOptions, optionReader, type WorkOptions } from './build.ts';
import {
  type AnyFanOut,
  checkFanOut,
  type FanOutOptions,
  fansOut,
  readFanOut,
  type SelectOptions,
} from './fan-out.ts';
import {
  type After,
  type FannedOut,
  type ItemSelect,
  outputParser,
  type Schema,
  type StepHandle,
  type Stored,
  toItemSelector,
} from './handle.ts';
import {
  type Budget,
  commandMaker,
  type OptionReader,
  type StepEnvironment,
  toTexts,
  withMinutes,
} from './rules.ts';
import { type AnyWorkspace, checkWork, placeOf, readWork, type WorkspaceOptions } from './work.ts';

type PresetName = NonNullable<StepPermissions['preset']>;

export interface AgentStepOptions<A extends After, Input, Output, Copies extends number, Item extends object>
  extends WorkOptions<A, Input>,
    WorkspaceOptions<A, Input, Item>,
    FanOutOptions<A, Input, Copies, Item> {
  /** Name of the agent's definition. */
  readonly agent: string;
  /** Prompt for the agent. */
  readonly prompt: string | ItemSelect<A, Input, Item, string>;
  /** Schema of the agent's answer. Without it, the output is `{ text }`. */
  readonly output?: Schema<Output> | undefined;
  readonly env?: StepEnvironment | ItemSelect<A, Input, Item, StepEnvironment> | undefined;
  /** Preset that replaces the one in the agent's definition, and rules that are added to it. */
  readonly permissions?: PresetName | AgentPermissions | undefined;
  readonly maxTurns?: number | undefined;
  /** Number of times that the agent may fix failing checks or an invalid output before the attempt fails. */
  readonly rework?: number | undefined;
  readonly budget?: Budget | undefined;
  /** Picks the best copy. The step succeeds if at least one copy does. */
  readonly select?: SelectOptions<A, Input> | undefined;
}

export interface AgentPermissions {
  readonly preset?: PresetName | undefined;
  /** Rules in the notation of Claude Code, such as `Bash(npm test)`. */
  readonly allow?: readonly string[] | undefined;
  readonly deny?: readonly string[] | undefined;
}

/** Output of an agent without an output schema. */
export interface AgentText {
  readonly text: string;
}

/** Defines a step that runs an agent. Never throws: `workflow` reports its problems. */
export function agent<
  A extends After = Record<never, never>,
  Input = unknown,
  Output = AgentText,
  Copies extends number = 1,
  Item extends object = never,
>(
  id: string,
  options: AgentStepOptions<A, Input, Output, Copies, Item>,
): StepHandle<FannedOut<Copies, Item, Stored<Output>>, Input> {
  const { agent: name, prompt, env = {}, maxTurns, rework = 0 } = options;
  const reader = optionReader(id);
  const isMany = fansOut(options);
  checkOptions(options, reader);
  const output = options.output && agentOutput(options.output, reader);
  return buildStep({
    id,
    options: { ...options, timeout: withMinutes(options.timeout, options.budget) },
    reader,
    budget: reader.spending(options.budget),
    place: placeOf(options, { kind: 'agent', isMany }),
    fanOut: dependencies => {
      const command = commandMaker(toItemSelector(dependencies, env));
      return readFanOut(options, { id, dependencies, command });
    },
    body: dependencies => {
      const environment = toItemSelector(dependencies, env);
      const work = readWork(options, {
        kind: 'agent',
        isMany,
        dependencies,
        command: commandMaker(environment),
      });
      if (!work) throw new Error('an agent step always has a workspace rule');
      return {
        kind: 'agent',
        agent: name,
        prompt: toItemSelector(dependencies, prompt),
        output,
        env: scope => toTexts(environment(scope)),
        permissions: permissionsOf(options.permissions),
        maxTurns,
        rework,
        work,
      };
    },
    describe: () => describeOptions({ ...options, ...omitted, output: output?.schema }),
  });
}

/** Removes the options that the fingerprint already contains or must not contain. */
const omitted = { after: undefined, input: undefined, if: undefined, retry: undefined, timeout: undefined };

/** Options of an agent step with any dependencies. */
interface AnyAgentStep extends AnyFanOut, AnyWorkspace {
  readonly agent: unknown;
  readonly prompt: unknown;
  readonly output?: unknown;
  readonly permissions?: PresetName | AgentPermissions | undefined;
  readonly maxTurns?: number | undefined;
  readonly rework?: number | undefined;
}

function checkOptions(options: AnyAgentStep, reader: OptionReader): void {
  const { agent: name, prompt, maxTurns, rework, checks, output, permissions } = options;
  reader.someText('`agent`', name);
  if (typeof prompt !== 'function') reader.someText('`prompt`', prompt);
  reader.count('maxTurns', maxTurns, 1);
  reader.count('rework', rework, 0);
  if (rework && !checks && !output)
    reader.problem(
      '`rework` has no effect, because the step has neither `checks` nor `output`',
      'add one of them, or remove `rework`',
    );
  const { allow, deny, preset } = permissionsOf(permissions) ?? { allow: [], deny: [] };
  reader.oneOf('permissions', preset, presets);
  for (const rule of [...allow, ...deny]) {
    const parsed = parseRule(String(rule));
    if (typeof parsed === 'string') reader.problem(parsed);
  }
  checkFanOut(options, reader);
  checkWork(options, fansOut(options), reader);
}

const presets: readonly PresetName[] = ['read-only', 'edit', 'full'];

function permissionsOf(permissions: PresetName | AgentPermissions | undefined): StepPermissions | undefined {
  if (permissions === undefined) return undefined;
  if (typeof permissions === 'string') return { preset: permissions, allow: [], deny: [] };
  const { preset, allow = [], deny = [] } = permissions;
  return { preset, allow, deny };
}

function agentOutput(schema: Schema, reader: OptionReader): AgentOutput | undefined {
  const parse = outputParser(schema);
  const described = jsonSchemaOf(schema);
  if (typeof described === 'string') {
    reader.problem(
      `the \`output\` schema cannot be shown to an agent: ${described}`,
      'use a `zod` schema that JSON Schema can express',
    );
    return undefined;
  }
  return parse && { schema: described, parse };
}

/**
 * Returns the JSON Schema of the input side, which is what the agent writes, or a message that says why there is
 * none.
 */
function jsonSchemaOf(schema: Schema): JsonObject | string {
  if (!('toJSONSchema' in schema) || typeof schema.toJSONSchema !== 'function')
    return 'the schema has no `toJSONSchema`';
  try {
    const { $schema: _, ...described } = toJson(schema.toJSONSchema({ io: 'input' })) as JsonObject;
    return described;
  } catch (error) {
    return error instanceof Error ? error.message : String(error);
  }
}
