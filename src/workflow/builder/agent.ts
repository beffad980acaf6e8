import { type JsonObject, toJson } from '../../core/json.ts';
import { parseRule } from '../../core/tools.ts';
import type { AgentOutput, StepPermissions } from '../model.ts';
import { buildStep, describeOptions, optionReader, type WorkOptions } from './build.ts';
import { commandMaker, type Environment, toTexts } from './commands.ts';
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
import { type Budget, type OptionReader, withMinutes } from './rules.ts';
import { type AnyWorkspace, checkWork, placeOf, readWork, type WorkspaceOptions } from './work.ts';

type Preset = NonNullable<StepPermissions['preset']>;

export interface AgentStepOptions<A extends After, Input, Output, Copies extends number, Item extends object>
  extends WorkOptions<A, Input>,
    WorkspaceOptions<A, Input, Item>,
    FanOutOptions<A, Input, Copies, Item> {
  /** The name of its definition. */
  readonly agent: string;
  /** What the agent is told. */
  readonly prompt: string | ItemSelect<A, Input, Item, string>;
  /** What the agent must answer with. Without it, the output is `{ text }`. */
  readonly output?: Schema<Output> | undefined;
  readonly env?: Environment | ItemSelect<A, Input, Item, Environment> | undefined;
  /** Beside what the definition of the agent says. */
  readonly permissions?: Preset | AgentPermissions | undefined;
  readonly maxTurns?: number | undefined;
  /** How often the agent is told what its checks, or its output schema, objected to, before the attempt fails. */
  readonly rework?: number | undefined;
  readonly budget?: Budget | undefined;
  /** Picks the best copy. One that succeeds is then enough. */
  readonly select?: SelectOptions<A, Input> | undefined;
}

export interface AgentPermissions {
  readonly preset?: Preset | undefined;
  /** Rules in the notation of Claude Code, such as `Bash(npm test)`. */
  readonly allow?: readonly string[] | undefined;
  readonly deny?: readonly string[] | undefined;
}

/** What an agent gives that has no output schema. */
export interface AgentText {
  readonly text: string;
}

/** A step that an agent does. Throws nothing: `workflow` reports what is wrong with it. */
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
      if (!work) throw new Error('an agent always says where it works');
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
    describe: () => describeOptions({ ...options, ...described, output: output?.schema }),
  });
}

/** What the fingerprint holds already, or must not hold. */
const described = { after: undefined, input: undefined, if: undefined, retry: undefined, timeout: undefined };

/** Whatever the dependencies are. */
interface AnyAgentStep extends AnyFanOut, AnyWorkspace {
  readonly agent: unknown;
  readonly prompt: unknown;
  readonly output?: unknown;
  readonly permissions?: Preset | AgentPermissions | undefined;
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
    reader.problem('there is nothing to rework: it has neither `checks` nor `output`', 'add one of them');
  const { allow, deny, preset } = permissionsOf(permissions) ?? { allow: [], deny: [] };
  if (preset !== undefined && !presets.includes(preset))
    reader.problem(`permissions are ${JSON.stringify(preset)}`, `one of ${presets.join(', ')}`);
  for (const rule of [...allow, ...deny]) {
    const parsed = parseRule(String(rule));
    if (typeof parsed === 'string') reader.problem(parsed);
  }
  checkFanOut(options, reader);
  checkWork(options, fansOut(options), reader);
}

const presets: readonly Preset[] = ['read-only', 'edit', 'full'];

function permissionsOf(permissions: Preset | AgentPermissions | undefined): StepPermissions | undefined {
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
      `its output cannot be described to an agent: ${described}`,
      'use a schema of `zod` that JSON Schema can express',
    );
    return undefined;
  }
  return parse && { schema: described, parse };
}

/** What the agent answers is read before any transformation. A sentence about what is wrong, if there is none. */
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
