import { nearest } from '../../core/suggest.ts';
import { contextNames, functionNamed, functionNames, isKnownContext } from './evaluate.ts';
import { type Call, childrenOf, type Expression, type Fault, type Span } from './parse.ts';

/** What an expression may name at its place. `undefined` where nothing is known and everything goes. */
export interface Visible {
  readonly inputs: ReadonlySet<string> | undefined;
  readonly env: ReadonlySet<string> | undefined;
  readonly steps: VisibleSteps;
  /** The names of the artifacts of each step; of one whose workers have their own, only that. */
  readonly artifacts?: ReadonlyMap<string, ReadonlySet<string> | 'of each worker'> | undefined;
  readonly matrix: VisibleMatrix;
}

export type VisibleMatrix =
  /** Here there is no matrix, and why. */
  | { readonly kind: 'none'; readonly because: string }
  /** The keys; `undefined` where they are known only when it runs. */
  | { readonly kind: 'some'; readonly known: ReadonlySet<string> | undefined };

export type VisibleSteps =
  /** Here no step can be read, and why. */
  | { readonly kind: 'none'; readonly because: string }
  | { readonly kind: 'all'; readonly known: ReadonlySet<string> }
  | {
      readonly kind: 'needed';
      readonly known: ReadonlySet<string>;
      readonly needs: readonly string[];
      readonly self: string;
    };

/** Everything in an expression that cannot work: unknown contexts, functions, inputs, steps and variables. */
export function checkExpression(expression: Expression, visible: Visible): readonly Fault[] {
  const own = checkNode(expression, visible);
  return own.length > 0 ? own : childrenOf(expression).flatMap(child => checkExpression(child, visible));
}

function checkNode(expression: Expression, visible: Visible): readonly Fault[] {
  if (expression.kind === 'call') return checkCall(expression);
  if (expression.kind === 'context') {
    return isKnownContext(expression.name) ? checkContext(expression, visible) : [unknownContext(expression)];
  }
  const path = staticPath(expression);
  const [context, name, field] = path ?? [];
  if (context === undefined || name === undefined) return [];
  const at = { start: expression.start, end: expression.end };
  switch (context) {
    case 'inputs':
      return field === undefined ? checkName({ name, context, known: visible.inputs, at }) : [];
    case 'env':
      return field === undefined ? checkName({ name, context, known: visible.env, at }) : [];
    case 'steps':
      return field === undefined
        ? checkStep(name, visible.steps, at)
        : checkStepField({ name, field, path, at, artifacts: visible.artifacts?.get(name) });
    case 'matrix':
      return field === undefined ? checkMatrixKey(name, visible.matrix, at) : [];
    case 'needs':
      return [needsInsteadOfSteps(name, at)];
    default:
      return [];
  }
}

function checkContext(
  { name, start, end }: Span & { readonly name: string },
  { steps, matrix }: Visible,
): readonly Fault[] {
  const wanted = name === 'steps' ? steps : name === 'matrix' ? matrix : undefined;
  if (wanted?.kind !== 'none') return [];
  return [{ message: `\`${name}\` cannot be read here: ${wanted.because}`, start, end }];
}

function checkMatrixKey(name: string, matrix: VisibleMatrix, at: Span): readonly Fault[] {
  if (matrix.kind === 'none' || !matrix.known || matrix.known.has(name)) return [];
  const guess = nearestName(name, matrix.known);
  const hint = guess ? `did you mean \`matrix.${guess}\`?` : `it has ${[...matrix.known].join(', ')}`;
  return [{ message: `\`${name}\` is not in the matrix of this step`, hint, ...at }];
}

/** `['steps', 'a', 'outputs']` for `steps.a['outputs']`; `undefined` if part of it is computed. */
function staticPath(expression: Expression): readonly string[] | undefined {
  if (expression.kind === 'context') return [expression.name];
  if (expression.kind !== 'property' && expression.kind !== 'index') return undefined;
  const target = staticPath(expression.target);
  if (!target) return undefined;
  if (expression.kind === 'property') return [...target, expression.name];
  const { index } = expression;
  return index.kind === 'literal' && typeof index.value === 'string' ? [...target, index.value] : undefined;
}

function checkCall({ name, args, start, end }: Call): readonly Fault[] {
  const known = functionNamed(name);
  if (!known) {
    const guess = nearest(name, functionNames);
    const hint = guess ? `did you mean \`${guess}()\`?` : `there are ${functionNames.join(', ')}`;
    return [{ message: `there is no function \`${name}\``, hint, start, end: start + name.length }];
  }
  const { minArguments: min, maxArguments: max } = known;
  if (args.length >= min && args.length <= max) return [];
  const wanted =
    min === max ? String(min) : max === Number.POSITIVE_INFINITY ? `at least ${min}` : `${min} or ${max}`;
  return [{ message: `\`${known.name}()\` takes ${plural(wanted)}, not ${args.length}`, start, end }];
}

const plural = (count: string): string =>
  count === '0' ? 'no arguments' : `${count} argument${count.endsWith('1') ? '' : 's'}`;

const foreignContexts: Readonly<Record<string, string>> = {
  needs: 'write `steps.<id>.outputs` for the output of a step',
  github: 'pass what you need as an input',
  secrets: 'read secrets from the environment in the script: "$NAME"',
  vars: 'read variables from the environment in the script: "$NAME"',
  runner: 'ask the machine in the script, for example `uname`',
  job: 'there are no jobs: a workflow is a list of steps',
};

function unknownContext({ name, start, end }: Span & { readonly name: string }): Fault {
  const foreign = Object.hasOwn(foreignContexts, name) ? foreignContexts[name] : undefined;
  const guess = nearest(name, contextNames);
  const hint =
    foreign ??
    (guess
      ? `did you mean \`${guess}\`?`
      : "there are inputs, steps, env and matrix; text is quoted: 'text'");
  return { message: `there is no context \`${name}\``, hint, start, end };
}

const needsInsteadOfSteps = (name: string, at: Span): Fault => ({
  message: 'there is no context `needs`',
  hint: `write \`steps.${name}\`, and keep \`${name}\` in the \`needs\` of this step`,
  ...at,
});

interface NameCheck {
  readonly name: string;
  readonly context: 'inputs' | 'env';
  readonly known: ReadonlySet<string> | undefined;
  readonly at: Span;
}

function checkName({ name, context, known, at }: NameCheck): readonly Fault[] {
  if (!known || known.has(name)) return [];
  const guess = nearestName(name, known);
  const add =
    context === 'inputs'
      ? `declare it under \`inputs:\``
      : `declare it under \`env:\`, or read the machine's own variable in the script: "$${name}"`;
  return [
    {
      message: `\`${context}.${name}\` is not declared`,
      hint: guess ? `did you mean \`${context}.${guess}\`?` : add,
      ...at,
    },
  ];
}

function checkStep(name: string, steps: VisibleSteps, at: Span): readonly Fault[] {
  if (steps.kind === 'none') return [];
  if (!steps.known.has(name)) {
    const guess = nearestName(name, steps.known);
    return [
      { message: `there is no step \`${name}\``, hint: guess && `did you mean \`steps.${guess}\`?`, ...at },
    ];
  }
  if (steps.kind === 'all' || steps.needs.includes(name)) return [];
  if (name === steps.self) return [{ message: `step \`${name}\` cannot read itself`, ...at }];
  return [
    {
      message: `\`${name}\` is not in the \`needs\` of step \`${steps.self}\`, so it may not have run yet`,
      hint: `add it: \`needs: [${[...steps.needs, name].join(', ')}]\``,
      ...at,
    },
  ];
}

const stepFields = ['outputs', 'outcome', 'conclusion', 'artifacts', 'branch', 'commit'] as const;

interface FieldCheck {
  readonly name: string;
  readonly field: string;
  readonly path: readonly string[] | undefined;
  readonly at: Span;
  readonly artifacts: ReadonlySet<string> | 'of each worker' | undefined;
}

function checkStepField({ name, field, path, at, artifacts }: FieldCheck): readonly Fault[] {
  const artifact = field === 'artifacts' && path?.length === 4 ? path[3] : undefined;
  if (artifact !== undefined && artifacts === 'of each worker') {
    const read = `steps.${name}.outputs.worker_results[0].artifacts.${artifact}`;
    const hint = `read those of one worker, \`${read}\`, or choose one with \`select\``;
    return [{ message: `each worker of \`${name}\` has artifacts of its own`, hint, ...at }];
  }
  if (artifact !== undefined && artifacts && artifacts !== 'of each worker' && !artifacts.has(artifact)) {
    const near = nearestName(artifact, artifacts);
    const hint = near ? `did you mean \`${near}\`?` : `declare it under \`artifacts:\` of \`${name}\``;
    return [{ message: `step \`${name}\` has no artifact \`${artifact}\``, hint, ...at }];
  }
  if (path?.length !== 3 || stepFields.some(known => known === field)) return [];
  const guess = field === 'result' ? 'outcome' : nearest(field, stepFields);
  const hint = guess
    ? `did you mean \`steps.${name}.${guess}\`?`
    : `a step has ${stepFields.map(known => `\`${known}\``).join(', ')}`;
  return [{ message: `a step has no \`${field}\``, hint, ...at }];
}

/** No person wrote so many, and comparing each with each takes too long. */
const maxNames = 2000;

/** The name that was most likely meant. */
export const nearestName = (word: string, names: ReadonlySet<string>): string | undefined =>
  names.size > maxNames ? undefined : nearest(word, names);
