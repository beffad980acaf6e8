import { type Json, type JsonObject, nearest } from '../../../core/index.ts';
import type { VisibleSteps } from '../../expression/check.ts';
import { fingerprintOf } from '../../graph.ts';
import type {
  ApproveBody,
  Body,
  FanOut,
  LandBody,
  RunBody,
  Scope,
  UsesBody,
  WorkflowModel,
  WorkRules,
} from '../../model.ts';
import type { StepDraft, WorkPlace } from '../../workspace-rules.ts';
import type { ChildLoader, LoadedWorkflow } from '../load.ts';
import { type StepDefinition, type StepKind, stepKinds } from '../schema.ts';
import type { ShapedStep } from '../shape.ts';
import type { ProblemContext } from '../source/yaml-source.ts';
import { compileAgent, compileOutput, type PromptReader } from './agent.ts';
import {
  type BodySite,
  bodySite,
  compileCondition,
  compileText,
  compileValue,
  isConstant,
  type SharedSite,
  withoutMatrix,
} from './expressions.ts';
import { checkNestedCopies, compileFanOut, visibleMatrix } from './fan-out.ts';
import { objectToValue } from './inputs.ts';
import {
  compileCommand,
  compileRetry,
  compileScript,
  compileSpending,
  compileTimeout,
  compileWork,
} from './work.ts';

/** Context that all steps of a file share. */
export interface StepsContext extends SharedSite {
  readonly stepIds: ReadonlySet<string>;
  /** `env` of the workflow as written. */
  readonly writtenEnvironment: JsonObject;
  readonly loadChild: ChildLoader;
  readonly readPrompt: PromptReader | undefined;
}

/** Returns the ids in a `needs` without duplicates. */
export function needsOf({ needs = [] }: Pick<StepDefinition, 'needs'>): readonly string[] {
  return typeof needs === 'string' ? [needs] : [...new Set(needs)];
}

/** Compiles a step. Returns `undefined` if its problems leave nothing to compile. */
export function compileStep(step: ShapedStep, context: StepsContext): StepDraft | undefined {
  const { definition, path, written } = step;
  if (!definition) return undefined;
  const { source, problems } = context;
  const needs = needsOf(definition);
  const steps: VisibleSteps = { kind: 'needed', known: context.stepIds, needs, self: definition.id };
  const site = bodySite({ definition, path, shared: context, steps, matrix: visibleMatrix(written) });
  const condition =
    definition.if === undefined
      ? undefined
      : compileCondition(definition.if, [...path, 'if'], withoutMatrix(site, evaluatedOnce));
  const timeout = compileTimeout(definition, path);
  for (const complaint of timeout.complaints) problems.add(source, complaint);
  const kind = kindOf(step, definition, context);
  const child =
    definition.uses === undefined ? undefined : context.loadChild(definition.uses, source, [...path, 'uses']);
  const fanOut = kind && mayFanOut(kind) ? compileFanOut({ kind, definition, written }, site) : undefined;
  if (fanOut && child) checkNestedCopies(fanOut, child.model, site);
  const compiled = kind && compileBody({ kind, definition, written, site, child, fanOut, context });
  if (!compiled) return undefined;
  const retry = compileRetry(definition.retry);
  const budget = compileSpending(definition.budget);
  return {
    place: compiled.place,
    model: {
      id: definition.id,
      needs: needs.map(id => ({ id, tolerant: condition?.readsStatus ?? false })),
      ...(condition ? { condition: (scope: Scope) => condition.test(site.evaluationContext(scope)) } : {}),
      optional: definition.optional ?? false,
      ...(retry ? { retry } : {}),
      timeout: timeout.rule,
      ...(budget ? { budget } : {}),
      ...(fanOut ? { fanOut } : {}),
      body: compiled.body,
      fingerprint: fingerprintOf({
        step: written,
        env: context.writtenEnvironment,
        child: child?.fingerprint ?? null,
        ...(compiled.promptText === undefined ? {} : { prompt: compiled.promptText }),
      }),
      position: source.positionOf(source.rangeOf(path).start),
    },
  };
}

const evaluatedOnce = 'a condition is evaluated once, before the step fans out';

const mayFanOut = (kind: StepKind): boolean => kind === 'run' || kind === 'agent' || kind === 'uses';

interface BodyOptions {
  readonly kind: StepKind;
  readonly definition: StepDefinition;
  readonly written: JsonObject;
  readonly site: BodySite;
  readonly child: LoadedWorkflow | undefined;
  readonly fanOut: FanOut | undefined;
  readonly context: StepsContext;
}

interface CompiledBody {
  readonly body: Body;
  readonly place?: WorkPlace | undefined;
  readonly promptText?: string | undefined;
}

function compileBody({ kind, definition, site, child, ...rest }: BodyOptions): CompiledBody | undefined {
  const fansOut = rest.fanOut !== undefined;
  switch (kind) {
    case 'run': {
      if (definition.run === undefined) return undefined;
      const { rules: work, place } = compileWork(definition, site, { kind, fansOut });
      return { body: compileRun({ script: definition.run, definition, work }, site), place };
    }
    case 'agent': {
      const { rules: work, place } = compileWork(definition, site, { kind, fansOut });
      if (definition.agent === undefined || !work) return undefined;
      const { readPrompt } = rest.context;
      const { agent } = definition;
      const compiled = compileAgent({ agent, definition, written: rest.written, work, readPrompt }, site);
      return compiled && { ...compiled, place };
    }
    case 'uses':
      return child && { body: compileUses(child.model, definition.with ?? {}, site) };
    case 'approve':
      return definition.approve === undefined
        ? undefined
        : { body: compileApprove(definition.approve, site) };
    case 'land':
      return definition.land === undefined ? undefined : compileLand(definition.land, definition, site);
  }
}

/** Keys that only some kinds of steps have. */
const kindsOfKey: Readonly<Partial<Record<keyof StepDefinition, readonly StepKind[]>>> = {
  shell: ['run'],
  'working-directory': ['run'],
  prompt: ['agent'],
  permissions: ['agent'],
  max_turns: ['agent'],
  on_fail: ['agent'],
  output: ['run', 'agent'],
  workspace: ['run', 'agent'],
  setup: ['run', 'agent'],
  checks: ['run', 'agent'],
  teardown: ['run', 'agent'],
  artifacts: ['run', 'agent'],
  concurrency: ['run', 'agent', 'uses'],
  strategy: ['run', 'agent', 'uses'],
  select: ['run', 'agent'],
  budget: ['run', 'agent', 'uses'],
  with: ['uses'],
  from: ['land'],
  verify: ['land'],
};

const kindsHint =
  'add one of `run` (a shell script), `agent` (a task for an agent), `uses` (another workflow), `approve` (a question for a person), `land` (lands work on a branch)';

/** Returns the kind of a step. Reports a missing kind, several kinds, and keys of other kinds. */
function kindOf(
  step: ShapedStep,
  definition: StepDefinition,
  { source, problems }: ProblemContext,
): StepKind | undefined {
  const [kind, second] = stepKinds.filter(key => Object.hasOwn(step.written, key));
  if (kind === undefined) {
    if (!step.isDamaged)
      problems.add(source, {
        path: step.path,
        message: `step \`${definition.id}\` does nothing`,
        hint: intendedKindHint(definition) ?? kindsHint,
      });
    return undefined;
  }
  if (second !== undefined) {
    problems.add(source, {
      path: [...step.path, second],
      atKey: true,
      message: `a step cannot have both \`${kind}\` and \`${second}\``,
      hint: 'split it into two steps',
    });
    return undefined;
  }
  for (const [key, kinds] of Object.entries(kindsOfKey)) {
    if (kinds.includes(kind) || !Object.hasOwn(step.written, key)) continue;
    const message = `\`${key}\` is only allowed in steps with ${listed(kinds)}, but this step has \`${kind}\``;
    problems.add(source, { path: [...step.path, key], atKey: true, message });
  }
  return kind;
}

/** Guesses the missing kind from the other keys, such as `agent` from a `prompt`. */
function intendedKindHint(definition: StepDefinition): string | undefined {
  for (const [key, kinds] of Object.entries(kindsOfKey)) {
    if (Object.hasOwn(definition, key) && kinds.length === 1)
      return `a step with \`${key}\` also needs \`${kinds[0]}\``;
  }
  return undefined;
}

const listed = (kinds: readonly StepKind[]): string => {
  const names = kinds.map(kind => `\`${kind}\``);
  return names.length < 2 ? names.join('') : `${names.slice(0, -1).join(', ')} or ${names.at(-1)}`;
};

interface RunParts {
  readonly script: string;
  readonly definition: StepDefinition;
  readonly work: WorkRules | undefined;
}

function compileRun({ script, definition, work }: RunParts, site: BodySite): RunBody {
  const { shell, 'working-directory': directory, output } = definition;
  const workingDirectory =
    directory === undefined ? undefined : compileText(directory, [...site.path, 'working-directory'], site);
  const parseOutput = output && compileOutput(output, site);
  return {
    kind: 'run',
    command: compileScript(script, [...site.path, 'run'], site, { shell, workingDirectory }),
    ...(parseOutput ? { parseOutput } : {}),
    ...(work ? { work } : {}),
  };
}

function compileApprove(approve: NonNullable<StepDefinition['approve']>, site: BodySite): ApproveBody {
  const { message, choices = ['approve', 'reject'] } =
    typeof approve === 'string' ? { message: approve } : approve;
  const path = [...site.path, 'approve'];
  const text = compileText(message, typeof approve === 'string' ? path : [...path, 'message'], site);
  for (const [index, choice] of choices.entries()) {
    if (choices.indexOf(choice) === index) continue;
    site.problems.add(site.source, {
      path: [...path, 'choices', index],
      message: `duplicate choice \`${choice}\``,
    });
  }
  return { kind: 'approve', request: scope => ({ message: text(site.evaluationContext(scope)), choices }) };
}

function compileUses(child: WorkflowModel, given: JsonObject, site: BodySite): UsesBody {
  checkInputs(child, given, site);
  const input = compileValue(given, [...site.path, 'with'], site);
  return { kind: 'uses', workflow: child, input: scope => input(site.evaluationContext(scope)) };
}

function checkInputs(
  { name: child, input: { fields } }: WorkflowModel,
  given: JsonObject,
  site: BodySite,
): void {
  const { source, problems } = site;
  const path = [...site.path, 'with'];
  const names = fields.map(({ name }) => name);
  for (const name of Object.keys(given)) {
    if (names.includes(name)) continue;
    const guess = nearest(name, names);
    const hint = guess
      ? `did you mean \`${guess}\`?`
      : names.length > 0
        ? `its inputs are ${names.join(', ')}`
        : 'it has no inputs';
    problems.add(source, {
      path: [...path, name],
      atKey: true,
      message: `workflow \`${child}\` has no input \`${name}\``,
      hint,
    });
  }
  for (const field of fields) {
    const value: Json | undefined = Object.hasOwn(given, field.name) ? given[field.name] : undefined;
    if (value === undefined) {
      if (!field.required) continue;
      const message = `workflow \`${child}\` requires the input \`${field.name}\``;
      const hint = `add \`with: { ${field.name}: ... }\``;
      problems.add(source, { path: [...site.path, 'uses'], message, hint });
      continue;
    }
    const objection = isConstant(value) ? objectToValue(field, value) : undefined;
    if (objection)
      problems.add(source, { path: [...path, field.name], message: `input \`${field.name}\` ${objection}` });
  }
}

interface CompiledLand {
  readonly body: LandBody;
  readonly place: WorkPlace;
}

/** Compiles a step that lands work. `placeWork` later resolves a missing `from`. */
function compileLand(land: string, { from, verify }: StepDefinition, site: BodySite): CompiledLand {
  const onto = compileText(land, [...site.path, 'land'], site);
  return {
    body: {
      kind: 'land',
      onto: scope => onto(site.evaluationContext(scope)),
      from: from ?? '',
      ...(verify === undefined ? {} : { verify: compileCommand(verify, [...site.path, 'verify'], site) }),
    },
    place: { kind: 'land', ...(from === undefined ? {} : { from }) },
  };
}
