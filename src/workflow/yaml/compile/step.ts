import type { JsonObject } from '../../../core/json.ts';
import type { VisibleSteps } from '../../expression/check.ts';
import { fingerprintOf } from '../../fingerprint.ts';
import type { Body, FanOut, Scope } from '../../model.ts';
import type { Draft, WorkPlace } from '../../workspace-rules.ts';
import { compileApprove, compileRun, compileUses } from '../body.ts';
import type { ChildLoader, LoadedWorkflow } from '../children.ts';
import { kindOf } from '../kind.ts';
import { compileLand } from '../land.ts';
import { compileRetry, compileSpending, compileTimeout } from '../limits.ts';
import { visibleMatrix } from '../matrix.ts';
import type { PromptReader } from '../prompt.ts';
import type { StepDefinition, StepKind } from '../schema.ts';
import type { ShapedStep } from '../shape.ts';
import { type BodySite, bodySite, type SharedSite, withoutMatrix } from '../site.ts';
import { compileAgent } from './agent.ts';
import { compileCondition } from './expressions.ts';
import { compileFanOut } from './fan-out.ts';
import { compileWork } from './work.ts';

/** What the steps of one file have in common. */
export interface StepsContext extends SharedSite {
  readonly stepIds: ReadonlySet<string>;
  /** The `env` of the workflow as written. */
  readonly writtenEnvironment: JsonObject;
  readonly loadChild: ChildLoader;
  readonly readPrompt: PromptReader | undefined;
}

/** The ids in a `needs`, each once. */
export function needsOf({ needs = [] }: Pick<StepDefinition, 'needs'>): readonly string[] {
  return typeof needs === 'string' ? [needs] : [...new Set(needs)];
}

/** One step; `undefined` if its problems leave nothing to build. */
export function compileStep(step: ShapedStep, context: StepsContext): Draft | undefined {
  const { definition, path, written } = step;
  if (!definition) return undefined;
  const { source, problems } = context;
  const needs = needsOf(definition);
  const steps: VisibleSteps = { kind: 'needed', known: context.stepIds, needs, self: definition.id };
  const site = bodySite({ definition, path, shared: context, steps, matrix: visibleMatrix(written) });
  const condition =
    definition.if === undefined
      ? undefined
      : compileCondition(definition.if, [...path, 'if'], withoutMatrix(site, decidedOnce));
  const timeout = compileTimeout(definition, path);
  for (const complaint of timeout.complaints) problems.add(source, complaint);
  const kind = kindOf(step, definition, context);
  const child =
    definition.uses === undefined ? undefined : context.loadChild(definition.uses, source, [...path, 'uses']);
  const fanOut = kind && mayFanOut(kind) ? compileFanOut({ kind, definition, written }, site) : undefined;
  const compiled = kind && compileBody({ kind, definition, written, site, child, fanOut, context });
  if (!compiled) return undefined;
  const retry = compileRetry(definition.retry);
  const budget = compileSpending(definition.budget);
  return {
    place: compiled.place,
    model: {
      id: definition.id,
      needs: needs.map(id => ({ id, tolerant: condition?.readsStatus ?? false })),
      ...(condition ? { condition: (scope: Scope) => condition.test(site.surroundings(scope)) } : {}),
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

const decidedOnce = 'a condition is decided once, before the step becomes many';

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
