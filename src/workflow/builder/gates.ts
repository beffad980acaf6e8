import type { Duration } from '../../core/index.ts';
import { buildStep, describeOptions, optionReader, type StepOptions, type WorkOptions } from './build.ts';
import {
  type After,
  isMaybe,
  isStep,
  maybeKey,
  type Select,
  type StepHandle,
  toItemSelector,
  toSelector,
} from './handle.ts';
import { commandMaker, type OptionReader, type StepEnvironment } from './rules.ts';

export interface ApproveOptions<A extends After, Input, Choice extends string>
  extends Omit<StepOptions<A, Input>, 'timeout'> {
  /** Question for the person. */
  readonly message: string | Select<A, Input, string>;
  /** Possible answers. Defaults to `approve` and `reject`. `reject` fails the step, any other choice completes it. */
  readonly choices?: readonly Choice[] | undefined;
  /** Time to wait for an answer, over all resumes. After that, the step fails. */
  readonly timeout?: Duration | undefined;
}

/** Answer of a person. `choice` is never `reject`, because that fails the step. */
export interface Approval<Choice extends string> {
  readonly choice: Choice;
  readonly by?: string;
  readonly comment?: string;
}

const defaultChoices = ['approve', 'reject'] as const;

/** Defines a step that waits for a person. Never throws: `workflow` reports its problems. */
export function approve<
  A extends After = Record<never, never>,
  Input = unknown,
  const Choice extends string = (typeof defaultChoices)[number],
>(
  id: string,
  options: ApproveOptions<A, Input, Choice>,
): StepHandle<Approval<Exclude<Choice, 'reject'>>, Input> {
  const { message, timeout, ...rest } = options;
  const choices: readonly string[] = options.choices ?? defaultChoices;
  const reader = optionReader(id);
  checkChoices(choices, reader);
  if (typeof message === 'string' && message.trim() === '') reader.problem('`message` is empty');
  return buildStep({
    id,
    options: { ...rest, timeout: timeout === undefined ? undefined : { step: timeout } },
    reader,
    body: dependencies => {
      const text = toSelector(dependencies, typeof message === 'function' ? message : () => message);
      return { kind: 'approve', request: scope => ({ message: text(scope), choices }) };
    },
    describe: () => JSON.stringify([typeof message === 'function' ? String(message) : message, choices]),
  });
}

function checkChoices(choices: readonly string[], reader: OptionReader): void {
  const duplicate = choices.find((choice, index) => choices.indexOf(choice) !== index);
  if (duplicate !== undefined) reader.problem(`duplicate choice ${JSON.stringify(duplicate)}`);
  if (choices.some(choice => choice.trim() === '')) reader.problem('a choice is empty');
  if (choices.every(choice => choice === 'reject')) {
    reader.problem('no choice lets the run continue', 'add a choice other than "reject"');
  }
}

export interface LandStepOptions<A extends After, Input> extends WorkOptions<A, Input> {
  /** Branch to land the work on. */
  readonly onto: string | Select<A, Input, string>;
  /** Step in `after` whose work lands. May be omitted if only one earlier step leaves work. */
  readonly from?: (keyof A & string) | undefined;
  /** Command that must pass on the rebased work before the branch moves. */
  readonly verify?: string | undefined;
  /** Environment variables for `verify`. */
  readonly env?: StepEnvironment | Select<A, Input, StepEnvironment> | undefined;
}

/** Result of a landing. A landing that is not possible fails the step. */
export interface Landed {
  readonly outcome: 'landed' | 'nothing-to-land';
  readonly onto: string;
  /** Current commit of the target branch. */
  readonly commit: string | null;
  /** Source branch. */
  readonly branch: string | null;
  readonly landed: readonly { readonly branch: string; readonly commit: string; readonly commits: number }[];
}

/** Defines a step that lands work on a branch. Never throws: `workflow` reports its problems. */
export function land<A extends After = Record<never, never>, Input = unknown>(
  id: string,
  options: LandStepOptions<A, Input>,
): StepHandle<Landed, Input> {
  const { onto, from, verify, env = {} } = options;
  const reader = optionReader(id);
  if (typeof onto !== 'function') reader.someText('`onto`', onto);
  if (verify !== undefined) reader.someText('`verify`', verify);
  const source = from === undefined ? undefined : sourceOf(options.after, from);
  if (from !== undefined && source === undefined)
    reader.problem(`\`from\` names "${from}", which is not in \`after\``, 'add the step to `after`');
  return buildStep({
    id,
    options,
    reader,
    place: { kind: 'land', from: source },
    body: dependencies => ({
      kind: 'land',
      onto: toItemSelector(dependencies, onto),
      from: source ?? '',
      verify: verify === undefined ? undefined : commandMaker(toItemSelector(dependencies, env))(verify),
    }),
    describe: () => describeOptions({ onto, from: source, verify, env }),
  });
}

function sourceOf(after: After | undefined, alias: string): string | undefined {
  const value: unknown = after && Object.hasOwn(after, alias) ? after[alias] : undefined;
  const step = isMaybe(value) ? value[maybeKey] : value;
  return isStep(step) ? step.id : undefined;
}
