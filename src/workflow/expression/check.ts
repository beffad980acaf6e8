import { nearest } from '../../core/index.ts';
import { contextNames, functionNamed, functionNames, isKnownContext } from './evaluate.ts';
import { type Call, childrenOf, type Expression, type ParseFault, type Span } from './parse.ts';

/** Names that an expression may use. `undefined` means that the names are unknown and anything is allowed. */
export interface VisibleNames {
  readonly inputs: ReadonlySet<string> | undefined;
  readonly env: ReadonlySet<string> | undefined;
  readonly steps: VisibleSteps;
  /** Artifact names by step. `'per copy'` for a fan-out whose copies have separate artifacts. */
  readonly artifacts?: ReadonlyMap<string, ReadonlySet<string> | 'per copy'> | undefined;
  readonly matrix: VisibleMatrix;
}

export type VisibleMatrix =
  /** No matrix exists here. `because` is part of the message. */
  | { readonly kind: 'none'; readonly because: string }
  /** Keys of the matrix. `undefined` if they are only known at run time. */
  | { readonly kind: 'some'; readonly known: ReadonlySet<string> | undefined };

export type VisibleSteps =
  /** No step can be read here. `because` is part of the message. */
  | { readonly kind: 'none'; readonly because: string }
  | { readonly kind: 'all'; readonly known: ReadonlySet<string> }
  | {
      readonly kind: 'needed';
      readonly known: ReadonlySet<string>;
      readonly needs: readonly string[];
      readonly self: string;
    };

/** Finds unknown contexts, functions, inputs, steps, variables and matrix keys in an expression. */
export function checkExpression(expression: Expression, visible: VisibleNames): readonly ParseFault[] {
  const own = checkNode(expression, visible);
  return own.length > 0 ? own : childrenOf(expression).flatMap(child => checkExpression(child, visible));
}

function checkNode(expression: Expression, visible: VisibleNames): readonly ParseFault[] {
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
  { steps, matrix }: VisibleNames,
): readonly ParseFault[] {
  const wanted = name === 'steps' ? steps : name === 'matrix' ? matrix : undefined;
  if (wanted?.kind !== 'none') return [];
  return [{ message: `\`${name}\` cannot be read here: ${wanted.because}`, start, end }];
}

function checkMatrixKey(name: string, matrix: VisibleMatrix, at: Span): readonly ParseFault[] {
  if (matrix.kind === 'none' || !matrix.known || matrix.known.has(name)) return [];
  const guess = nearestName(name, matrix.known);
  const hint = guess ? `did you mean \`matrix.${guess}\`?` : `its keys are ${[...matrix.known].join(', ')}`;
  return [{ message: `\`${name}\` is not in the matrix of this step`, hint, ...at }];
}

/** Returns `['steps', 'a', 'outputs']` for `steps.a['outputs']`, or `undefined` if part of it is computed. */
function staticPath(expression: Expression): readonly string[] | undefined {
  if (expression.kind === 'context') return [expression.name];
  if (expression.kind !== 'property' && expression.kind !== 'index') return undefined;
  const target = staticPath(expression.target);
  if (!target) return undefined;
  if (expression.kind === 'property') return [...target, expression.name];
  const { index } = expression;
  return index.kind === 'literal' && typeof index.value === 'string' ? [...target, index.value] : undefined;
}

function checkCall({ name, args, start, end }: Call): readonly ParseFault[] {
  const known = functionNamed(name);
  if (!known) {
    const guess = nearest(name, functionNames);
    const hint = guess ? `did you mean \`${guess}()\`?` : `known functions: ${functionNames.join(', ')}`;
    return [{ message: `unknown function \`${name}\``, hint, start, end: start + name.length }];
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
  github: 'pass the value as an input',
  secrets: 'read secrets from the environment in the script: "$NAME"',
  vars: 'read variables from the environment in the script: "$NAME"',
  runner: 'query the machine in the script, for example with `uname`',
  job: 'there are no jobs: a workflow is a list of steps',
};

function unknownContext({ name, start, end }: Span & { readonly name: string }): ParseFault {
  const foreign = Object.hasOwn(foreignContexts, name) ? foreignContexts[name] : undefined;
  const guess = nearest(name, contextNames);
  const hint =
    foreign ??
    (guess
      ? `did you mean \`${guess}\`?`
      : "known contexts: inputs, steps, env, matrix; quote text with single quotes: 'text'");
  return { message: `unknown context \`${name}\``, hint, start, end };
}

const needsInsteadOfSteps = (name: string, at: Span): ParseFault => ({
  message: 'unknown context `needs`',
  hint: `write \`steps.${name}\`, and keep \`${name}\` in the \`needs\` of this step`,
  ...at,
});

interface NameCheck {
  readonly name: string;
  readonly context: 'inputs' | 'env';
  readonly known: ReadonlySet<string> | undefined;
  readonly at: Span;
}

function checkName({ name, context, known, at }: NameCheck): readonly ParseFault[] {
  if (!known || known.has(name)) return [];
  const guess = nearestName(name, known);
  const add =
    context === 'inputs'
      ? `declare it under \`inputs:\``
      : `declare it under \`env:\`, or read the environment variable in the script: "$${name}"`;
  return [
    {
      message: `\`${context}.${name}\` is not declared`,
      hint: guess ? `did you mean \`${context}.${guess}\`?` : add,
      ...at,
    },
  ];
}

function checkStep(name: string, steps: VisibleSteps, at: Span): readonly ParseFault[] {
  if (steps.kind === 'none') return [];
  if (!steps.known.has(name)) {
    const guess = nearestName(name, steps.known);
    return [
      { message: `unknown step \`${name}\``, hint: guess && `did you mean \`steps.${guess}\`?`, ...at },
    ];
  }
  if (steps.kind === 'all' || steps.needs.includes(name)) return [];
  if (name === steps.self) return [{ message: `step \`${name}\` cannot read its own result`, ...at }];
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
  readonly artifacts: ReadonlySet<string> | 'per copy' | undefined;
}

function checkStepField({ name, field, path, at, artifacts }: FieldCheck): readonly ParseFault[] {
  const artifact = field === 'artifacts' && path?.length === 4 ? path[3] : undefined;
  if (artifact !== undefined && artifacts === 'per copy') {
    const read = `steps.${name}.outputs.worker_results[0].artifacts.${artifact}`;
    const hint = `read the artifact of one copy with \`${read}\`, or choose a copy with \`select\``;
    return [{ message: `each copy of \`${name}\` has its own artifacts`, hint, ...at }];
  }
  if (artifact !== undefined && artifacts && artifacts !== 'per copy' && !artifacts.has(artifact)) {
    const near = nearestName(artifact, artifacts);
    const hint = near ? `did you mean \`${near}\`?` : `declare it under \`artifacts:\` of \`${name}\``;
    return [{ message: `step \`${name}\` has no artifact \`${artifact}\``, hint, ...at }];
  }
  if (path?.length !== 3 || stepFields.some(known => known === field)) return [];
  const guess = field === 'result' ? 'outcome' : nearest(field, stepFields);
  const hint = guess
    ? `did you mean \`steps.${name}.${guess}\`?`
    : `known fields: ${stepFields.map(known => `\`${known}\``).join(', ')}`;
  return [{ message: `unknown field \`${field}\` of a step`, hint, ...at }];
}

/** Above this number, a suggestion would take too long to compute. */
const maxNames = 2000;

/** Returns the name that was most likely meant. */
export const nearestName = (word: string, names: ReadonlySet<string>): string | undefined =>
  names.size > maxNames ? undefined : nearest(word, names);
